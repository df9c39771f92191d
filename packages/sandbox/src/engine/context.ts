import { readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { CaissonError } from "@caisson/contract";
import { type NewEvent, type StateChange, type Store, type StoredEvent, soonMs } from "@caisson/store";
import { Approvals } from "../approvals/index.ts";
import type { NameResolver } from "../egress/resolver.ts";
import { ImageStore } from "../images/index.ts";
import { DiskWatcher, type FoundCgroups, freeOn, MemoryWatcher } from "../limits/index.ts";
import { Forwards } from "../ports/index.ts";
import { Profiles } from "../profiles/index.ts";
import type { Secrets } from "../secrets/index.ts";
import { Toolchains } from "../toolchains/index.ts";
import { Admission } from "./admission.ts";
import type { Box } from "./box.ts";
import { ClosedAhead } from "./closed-ahead.ts";
import { ClosedMachines } from "./closed-machines.ts";
import { EnforcementReports } from "./enforcement.ts";
import { Idempotency } from "./idempotency.ts";
import { defaultSettings, type EngineParts, type EngineSettings, type Log } from "./parts.ts";
import { MemoryBudget } from "./process-log/index.ts";

/** Output in memory of all processes together. */
const outputMemoryBytes = 32 * 1024 * 1024;

/** What all parts of the engine share. */
export class EngineContext {
  readonly parts: EngineParts;
  /** The data directory's real path. */
  readonly home: string;
  readonly settings: EngineSettings;
  readonly store: Store;
  readonly log: Log;
  readonly profiles: Profiles;
  readonly cgroups: FoundCgroups;
  readonly toolchains: Toolchains;
  readonly images: ImageStore;
  readonly watcher = new MemoryWatcher();
  readonly diskWatcher = new DiskWatcher(() => freeOn(this.home));
  readonly admission: Admission;
  readonly reports: EnforcementReports;
  readonly idempotency: Idempotency;
  readonly approvals: Approvals;
  readonly forwards = new Forwards();
  readonly closedAhead = new ClosedAhead(this);
  readonly closedMachines = new ClosedMachines(this);
  #secrets: Promise<Secrets> | undefined;
  readonly outputBudget = new MemoryBudget(outputMemoryBytes);
  /** Living sandboxes by id, and by the name of their session in lower case. */
  readonly boxes = new Map<string, Box>();
  readonly sessions = new Map<string, Box>();
  readonly bootId = readBootId();
  /** What does not work at the moment, by subject. */
  readonly troubles = new Map<string, string>();
  /** Looks names up for all sandboxes; made with the first connection. */
  names: NameResolver | undefined;
  readonly #afterwards = new Set<Promise<void>>();
  closing = false;

  constructor(parts: EngineParts) {
    this.parts = parts;
    this.home = realpathSync(parts.home);
    this.settings = {
      ...defaultSettings,
      ...parts.settings,
      admission: { ...defaultSettings.admission, ...parts.settings?.admission },
    };
    this.store = parts.store;
    this.log = parts.log ?? (() => {});
    this.profiles = new Profiles(this.settings.profiles, this.settings.agents);
    this.cgroups = parts.cgroups;
    this.toolchains = new Toolchains(this.home, parts.surroundings ?? { path: "", home: "" });
    this.images = new ImageStore({
      home: this.home,
      guest: parts.guest,
      store: parts.store,
      commit: (events, changes) => this.commit(events, changes),
      removeTree: (path) => parts.trees.remove(path),
      ...(parts.engineSocket ? { engineSocket: () => parts.engineSocket!() } : {}),
      inUse: () => [...this.boxes.values()].flatMap((box) => box.record.imageId ?? []),
    });
    this.admission = new Admission(this.settings.admission);
    this.reports = new EnforcementReports(parts.store);
    this.idempotency = new Idempotency(parts.store);
    this.approvals = new Approvals({
      store: parts.store,
      settings: this.settings.approvals,
      log: (level, message, fields) => this.log(level, message, fields),
    });
  }

  /** Cleaning that nobody waits for, except the daemon's end. */
  afterwards(cleaning: Promise<void>): void {
    const done = cleaning.finally(() => this.#afterwards.delete(done));
    this.#afterwards.add(done);
  }

  async cleaned(): Promise<void> {
    while (this.#afterwards.size > 0) await Promise.all(this.#afterwards);
  }

  /** Loaded when somebody first needs them. */
  secrets(): Promise<Secrets> {
    this.#secrets ??= import("../secrets/index.ts").then(
      ({ parseDefinitions, Secrets }) =>
        new Secrets(parseDefinitions(this.settings.secrets), join(this.home, "secrets.json")),
    );
    return this.#secrets;
  }

  get sandboxesDir(): string {
    return join(this.parts.home, "sandboxes");
  }

  /** The directory of a place. */
  dirOf(place: string): string {
    return join(this.sandboxesDir, place);
  }

  /** `withinMs`: it may wait so long for company. */
  async commit(
    events: NewEvent[],
    changes: StateChange[] = [],
    options: { withinMs?: number } = {},
  ): Promise<StoredEvent[]> {
    return this.#noticed(await this.store.commit(events, changes, options));
  }

  /** Commits soon what no caller waits for, again and again until the disk takes it. */
  async commitSurely(events: NewEvent[], changes: StateChange[]): Promise<void> {
    for (let wait = 250; !this.closing; wait = Math.min(wait * 2, 5000)) {
      try {
        this.#noticed(await this.store.commit(events, changes, { withinMs: soonMs }));
        return;
      } catch (error) {
        this.log("error", "the log cannot be written", { error: String(error) });
        // A store that has failed for good stays so until the daemon is started again.
        if (CaissonError.from(error).code === "STORAGE_FAILED" && this.store.trouble() !== undefined) return;
        await new Promise((resolve) => setTimeout(resolve, wait).unref());
      }
    }
  }

  /** Sandboxes know the number of their latest event. */
  #noticed(events: StoredEvent[]): StoredEvent[] {
    for (const { sandboxId, seq } of events) {
      const box = this.boxes.get(sandboxId);
      if (box && box.record.seq < seq) box.record.seq = seq;
    }
    return events;
  }
}

function readBootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return "";
  }
}
