/** `npm test -- --full`: many more rounds of what is random. */
export function isFull(): boolean {
  return process.env.CAISSON_TEST_FULL !== undefined;
}

/** How long a test may take before it is taken for hanging, in milliseconds. */
export function within(usual: number): number {
  return isFull() ? 6 * usual : usual;
}
