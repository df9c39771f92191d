// What came of all tests, and what is printed of it.

/** One check or test. */
export interface Outcome {
  outcome: "passed" | "failed" | "skipped";
  /** With the file it is in, where there is one. */
  name: string;
  /** Why it was skipped. */
  reason?: string;
}

export class Tally {
  readonly #outcomes: Outcome[] = [];

  add(outcomes: readonly Outcome[]): void {
    this.#outcomes.push(...outcomes);
  }

  get failed(): number {
    return this.#of("failed").length;
  }

  /** Each failure and each skip, and one line at the end: N passed, N failed, N skipped. */
  print(): void {
    for (const { name } of this.#of("failed")) console.log(`failed: ${name}`);
    for (const { name, reason } of this.#of("skipped"))
      console.log(`skipped: ${name}: ${reason ?? "no reason given"}`);
    const [passed, failed, skipped] = (["passed", "failed", "skipped"] as const).map(
      (outcome) => this.#of(outcome).length,
    );
    console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  }

  #of(outcome: Outcome["outcome"]): Outcome[] {
    return this.#outcomes.filter((one) => one.outcome === outcome);
  }
}

/** How many of them ended in which way, in words. */
export function inWords(outcomes: readonly Outcome[]): string {
  const counts = Map.groupBy(outcomes, ({ outcome }) => outcome);
  return [...counts].map(([outcome, { length }]) => `${length} ${outcome}`).join(", ");
}
