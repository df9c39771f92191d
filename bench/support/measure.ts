// Timing by interleaved repetitions: what is compared runs in turns, so that noise hits all alike.

/** One thing to time; returns nothing or the measured milliseconds itself. */
export type Subject = () => Promise<unknown>;

/** Runs the subjects in turns and returns every time in milliseconds. */
export async function interleave<K extends string>(
  subjects: Record<K, Subject>,
  rounds: number,
  options: { warmup?: number; pauseMs?: number } = {},
): Promise<Record<K, number[]>> {
  const names = Object.keys(subjects) as K[];
  const times = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<K, number[]>;
  for (let round = -(options.warmup ?? 3); round < rounds; round++) {
    for (const name of names) {
      if (options.pauseMs) await new Promise((resolve) => setTimeout(resolve, options.pauseMs));
      const began = performance.now();
      const own = await subjects[name]();
      if (round >= 0) times[name].push(typeof own === "number" ? own : performance.now() - began);
    }
  }
  return times;
}

/** A subject so short that a single time of it is mostly noise: the median of several, each after a pause. */
export function several(subject: Subject, times: number, pauseMs: number): Subject {
  return async () => median((await interleave({ subject }, times, { warmup: 0, pauseMs })).subject);
}

export function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

export function mean(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
