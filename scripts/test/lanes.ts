// Runs jobs side by side: the machine waits for none of them as long as there is another.
import type { Outcome } from "./tally.ts";

export interface Job {
  stage: string;
  /** What it runs, as people would name it. */
  title: string;
  /** Of these only one runs at a time: they are many processes by themselves, or share what only one can have. */
  kind?: "drivers" | "cargo";
  run(): Promise<Result>;
}

export interface Result {
  outcomes: Outcome[];
  /** What it said; printed when something failed. */
  said: string;
}

/** Runs all jobs, in their order as far as possible and `lanes` of them at a time. */
export async function runJobs(
  jobs: readonly Job[],
  lanes: number,
  done: (job: Job, result: Result, seconds: number) => void,
): Promise<void> {
  const waiting = [...jobs];
  const running = new Set<Job>();
  await new Promise<void>((resolve) => {
    const fill = () => {
      while (running.size < lanes) {
        const index = waiting.findIndex(
          ({ kind }) => !kind || ![...running].some((one) => one.kind === kind),
        );
        if (index < 0) break;
        const [job] = waiting.splice(index, 1);
        running.add(job!);
        void runOne(job!);
      }
      if (running.size === 0) resolve();
    };
    const runOne = async (job: Job) => {
      const began = performance.now();
      const result = await job.run().catch(
        (error: unknown): Result => ({
          outcomes: [{ outcome: "failed", name: job.title }],
          said: String(error),
        }),
      );
      running.delete(job);
      done(job, result, (performance.now() - began) / 1000);
      fill();
    };
    fill();
  });
}
