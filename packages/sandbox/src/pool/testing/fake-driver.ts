import { Tier } from "@caisson/contract";
import type { Driver, Launched, LaunchSpec } from "../../driver/driver.ts";
import { FakeGuest } from "../../link/testing/fake-guest.ts";

/** Greater than any number that the kernel gives: whoever watches or kills it must find nothing. */
const noProcess = 2 ** 22 + 1;

/** A driver for tests: each sandbox is a fake guest in this process. */
export class FakeDriver implements Driver {
  readonly name = "fake";
  readonly tier = Tier.CONTAINER;
  readonly capabilities = [];
  readonly specs: LaunchSpec[] = [];
  readonly alive = new Map<string, { guest: FakeGuest; die: (reason: string) => Promise<void> }>();
  failing = false;
  /** Launches wait for it. */
  hold: Promise<void> | undefined;
  /** Launches under way, and the most there ever were. */
  launching = 0;
  maxLaunching = 0;

  async probe() {
    return { usable: true };
  }

  async adopt() {
    return undefined;
  }

  async launch(spec: LaunchSpec): Promise<Launched> {
    this.specs.push(spec);
    this.launching += 1;
    this.maxLaunching = Math.max(this.maxLaunching, this.launching);
    try {
      await this.hold;
      if (this.failing) throw new Error("the fake fails");
      const guest = await new FakeGuest().listen();
      let end!: (reason: string) => void;
      const ended = new Promise<string>((resolve) => {
        end = resolve;
      });
      const die = async (reason: string) => {
        this.alive.delete(spec.sandboxId);
        await guest[Symbol.asyncDispose]();
        end(reason);
      };
      this.alive.set(spec.sandboxId, { guest, die });
      return {
        record: { driver: "fake", pid: noProcess, startTime: 1, uid: 0, gid: 0, socket: guest.path },
        connect: guest.connect,
        kill: () => die("killed"),
        ended,
        attach: async () => [],
        mechanisms: () => [],
      };
    } finally {
      this.launching -= 1;
    }
  }
}
