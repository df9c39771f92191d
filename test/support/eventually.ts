/** Waits until something holds; fails with what was last seen if it never does. The bound only guards against hanging. */
export async function eventually<T>(
  look: () => T | Promise<T>,
  holds: (value: T) => boolean,
  options: { within?: number; what?: string } = {},
): Promise<T> {
  const deadline = performance.now() + (options.within ?? 30_000);
  for (;;) {
    const value = await look();
    if (holds(value)) return value;
    if (performance.now() > deadline) {
      throw new Error(`${options.what ?? "what was waited for"} did not come; last seen: ${show(value)}`);
    }
    await sleep(25);
  }
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function show(value: unknown): string {
  return (JSON.stringify(value) ?? String(value)).slice(0, 2000);
}
