import { mkdirSync } from "node:fs";
import type { Sealed } from "@caisson/contract/link";
import { BubblewrapDriver } from "../../driver/bubblewrap/driver.ts";
import { type accounts, Bench } from "../../keeper/testing.ts";
import { newSandboxId } from "../../pool/sandbox-id.ts";
import type { Guest } from "../guest.ts";
import { openGuest } from "../open.ts";
import { CollectingSink } from "./collecting-sink.ts";

type Account = ReturnType<typeof accounts>[number];

export interface Outcome {
  code: number;
  out: string;
  err: string;
}

/** A sealed sandbox of the real guest, without an engine. */
export class SealedSandbox implements AsyncDisposable {
  readonly guest: Guest;
  readonly sealed: Sealed;
  readonly #dispose: () => Promise<void>;

  private constructor(guest: Guest, sealed: Sealed, dispose: () => Promise<void>) {
    this.guest = guest;
    this.sealed = sealed;
    this.#dispose = dispose;
  }

  static async start(account: Account): Promise<SealedSandbox> {
    const bench = new Bench(account);
    const driver = new BubblewrapDriver({ keeper: bench.keeper, guest: bench.guest });
    const sandboxId = newSandboxId();
    const dir = `${bench.dir}/${sandboxId}`;
    mkdirSync(dir, { mode: 0o700 });
    bench.give(dir);
    const launched = await driver.launch({ sandboxId, image: "host", dir, cgroups: [] });
    const guest = await openGuest(() => launched.connect(), { ended: launched.ended });
    const home = { user: "agent", home: "/home/agent", workdir: "/home/agent" };
    const sealed = await guest.seal({ hostname: "box", uid: 1000, gid: 1000, ...home });
    return new SealedSandbox(guest, sealed, async () => {
      guest.close();
      await launched.kill();
      await bench[Symbol.asyncDispose]();
    });
  }

  /** Runs a command to its end. */
  async run(...argv: string[]): Promise<Outcome> {
    const sink = new CollectingSink();
    const stream = this.guest.nextStream();
    await this.guest.start({ stream, argv, cwd: "/", timeoutMs: 60_000n }, sink);
    const { code } = await sink.exit;
    this.guest.forget(stream);
    return { code, out: sink.bytes(1).toString(), err: sink.bytes(2).toString() };
  }

  /** Starts a command that goes on. */
  async spawn(...argv: string[]): Promise<{ stream: number; sink: CollectingSink }> {
    const sink = new CollectingSink();
    const stream = this.guest.nextStream();
    await this.guest.start({ stream, argv, cwd: "/", stdin: true }, sink);
    return { stream, sink };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#dispose();
  }
}
