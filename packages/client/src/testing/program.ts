import type { FakeProcess } from "./process.ts";

/** What a fake command does; returns its exit code. */
export type Program = (process: FakeProcess, args: string[]) => Promise<number>;

const encoder = new TextEncoder();

/** Commands that tests can rely on. Anything else is not found. */
export const programs: Record<string, Program> = {
  true: async () => 0,
  false: async () => 1,
  exit: async (_process, [code]) => Number(code),
  echo: async (process, args) => {
    process.write("stdout", encoder.encode(`${args.join(" ")}\n`));
    return 0;
  },
  touch: async (process) => {
    process.touchesProject = true;
    return 0;
  },
  /** Writes its arguments to stderr. */
  complain: async (process, args) => {
    process.write("stderr", encoder.encode(`${args.join(" ")}\n`));
    return 0;
  },
  /** Writes bytes given in hexadecimal. */
  bytes: async (process, [hex]) => {
    process.write("stdout", Buffer.from(hex ?? "", "hex"));
    return 0;
  },
  cat: async (process) => {
    for (;;) {
      const piece = await process.read();
      if (!piece) return 0;
      process.write("stdout", piece);
    }
  },
  env: async (process) => {
    const lines = Object.entries(process.env).map(([name, value]) => `${name}=${value}\n`);
    process.write("stdout", encoder.encode(lines.join("")));
    return 0;
  },
  pwd: async (process) => {
    process.write("stdout", encoder.encode(`${process.message.cwd}\n`));
    return 0;
  },
  /** Says `ready`, then runs until a signal ends it; `stubborn` ignores all but SIGKILL. */
  wait: async (process) => {
    process.write("stdout", encoder.encode("ready\n"));
    await process.killed;
    return 0;
  },
  stubborn: async (process) => {
    process.ignoresSignals = true;
    process.write("stdout", encoder.encode("ready\n"));
    await process.killed;
    return 0;
  },
  /** Writes `count` numbered lines, one per turn of the event loop. */
  count: async (process, [count]) => {
    for (let line = 1; line <= Number(count); line++) {
      process.write("stdout", encoder.encode(`${line}\n`));
      await new Promise((resolve) => setImmediate(resolve));
    }
    return 0;
  },
  /** Tells its terminal's size now and whenever it changes, until its input ends. */
  size: async (process) => {
    const tell = () =>
      process.write("stdout", encoder.encode(`${process.size.columns}x${process.size.rows}\n`));
    process.onResize = tell;
    tell();
    while (await process.read());
    return 0;
  },
};
