import { CaissonError, type Enforcement, type Sandbox, SandboxState } from "@caisson/contract";
import type { StateChange } from "@caisson/store";
import type { Launched } from "../driver/driver.ts";
import type { Interceptor } from "../egress/seams.ts";
import type { Cgroup, Watched } from "../limits/index.ts";
import type { Guest } from "../link/guest.ts";
import type { Place } from "./admission.ts";
import { toSandbox } from "./messages.ts";
import type { Outlet } from "./network/outlet.ts";
import type { Proc } from "./process/proc.ts";
import { kinds, type SandboxRecord } from "./records.ts";

/** A value that means: never. */
const never = 0xffffffff;

/** A living sandbox: its record, and what of it exists only while it lives. */
export class Box {
  readonly record: SandboxRecord;
  enforcement: Enforcement | undefined;
  launched: Launched | undefined;
  guest: Guest | undefined;
  /** Its way out. */
  outlet: Outlet | undefined;
  /** Puts secrets into what it sends, if it has any. */
  interceptor: Interceptor | undefined;
  cgroup: Cgroup | undefined;
  place: Place | undefined;
  /** Running and exited, in the order of their start. */
  readonly processes = new Map<string, Proc>();
  /** Settles when it is ready or has failed to become so. */
  readonly ready = Promise.withResolvers<void>();
  /** Resolves when it has ended. */
  readonly gone = Promise.withResolvers<void>();
  /** Under way once somebody has begun to end it. */
  ending: Promise<void> | undefined;
  /** It is gone, but the disk refuses to keep that for now. */
  unrecorded: CaissonError | undefined;
  unwatch: (() => void) | undefined;
  /** Its place with the memory watcher, where no control group counts. */
  watched: Watched | undefined;
  /** How often the kernel or the watcher had ended a process for want of memory when it was last looked at. */
  oomSeen = 0;
  oomByWatcher = 0;
  /** By a kernel of its own. */
  oomByKernel = 0;
  /** Calls under way that keep it from being idle. */
  #busy = 0;
  /** Of the monotonic clock. */
  #idleSince = performance.now();
  readonly #bornAt: number;

  /** It is being ended, or is about to be because its one command has exited. */
  get over(): boolean {
    return this.ending !== undefined || this.processes.get(this.record.runs)?.record.exit !== undefined;
  }

  constructor(record: SandboxRecord) {
    this.record = record;
    this.#bornAt = performance.now() - Math.max(0, Date.now() - record.createdAt);
    this.ready.promise.catch(() => {});
  }

  get id(): string {
    return this.record.id;
  }

  /** The guest of a sandbox that is ready; refuses otherwise. */
  livingGuest(): Guest {
    if (this.record.state === SandboxState.READY && this.guest) return this.guest;
    throw this.notReady();
  }

  notReady(): CaissonError {
    if (this.record.state >= SandboxState.STOPPING) {
      return new CaissonError(
        "SANDBOX_ENDED",
        `the sandbox has ended: ${this.record.endReason || "it is being ended"}`,
      );
    }
    return new CaissonError("UNAVAILABLE", "the sandbox is not ready yet");
  }

  running(): Proc[] {
    return [...this.processes.values()].filter((proc) => !proc.record.exit);
  }

  /** Keeps the sandbox from being idle until the returned function is called. */
  use(): () => void {
    this.#busy++;
    let done = false;
    return () => {
      if (done) return;
      done = true;
      this.#busy--;
      this.#idleSince = performance.now();
    };
  }

  /** The reason for which its time is over, if it is. */
  expired(): "idle" | "max_age" | undefined {
    const now = performance.now();
    if (this.record.maxAgeS !== never && now - this.#bornAt >= this.record.maxAgeS * 1000) return "max_age";
    if (this.#busy > 0 || this.record.idleTtlS === never) return undefined;
    return now - this.#idleSince >= this.record.idleTtlS * 1000 ? "idle" : undefined;
  }

  /** When it ends if nothing happens until then, as milliseconds since the epoch; 0: never. */
  expiresAt(): number {
    if (this.record.state >= SandboxState.STOPPING) return 0;
    const now = performance.now();
    const ends: number[] = [];
    if (this.record.maxAgeS !== never) ends.push(this.#bornAt + this.record.maxAgeS * 1000);
    if (this.#busy === 0 && this.record.idleTtlS !== never)
      ends.push(this.#idleSince + this.record.idleTtlS * 1000);
    return ends.length === 0 ? 0 : Math.round(Date.now() + Math.min(...ends) - now);
  }

  /** Its record as it is now, to be stored. */
  put(): StateChange {
    return { put: kinds.sandbox, key: this.id, value: this.record };
  }

  message(): Sandbox {
    return toSandbox(this.record, this.enforcement, { seq: this.record.seq, expiresAt: this.expiresAt() });
  }
}
