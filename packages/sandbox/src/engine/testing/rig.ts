import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CallContext } from "@caisson/contract";
import { openSqliteStore, type Store } from "@caisson/store";
import type { Launched, LaunchRecord } from "../../driver/driver.ts";
import { openGuest } from "../../link/open.ts";
import { Pool } from "../../pool/pool.ts";
import { FakeDriver } from "../../pool/testing/fake-driver.ts";
import type { Engine } from "../engine.ts";
import { openEngine } from "../index.ts";
import type { EngineSettings } from "../parts.ts";
import { makeLayer } from "../workspace.ts";

/** Sandboxes of the fake driver that a later engine can find again. */
class AdoptableDriver extends FakeDriver {
  readonly launchedOnes = new Map<string, Launched>();

  override async launch(spec: Parameters<FakeDriver["launch"]>[0]): Promise<Launched> {
    const launched = await super.launch(spec);
    this.launchedOnes.set(spec.sandboxId, launched);
    return launched;
  }

  override async adopt(sandboxId?: string, _record?: LaunchRecord) {
    return this.alive.has(sandboxId ?? "") ? (this.launchedOnes.get(sandboxId!) as never) : undefined;
  }
}

export interface Rig extends AsyncDisposable {
  readonly home: string;
  readonly driver: AdoptableDriver;
  readonly store: Store;
  readonly engine: Engine;
  /** Throws the engine and the store away as a killed daemon would, and opens new ones on the same directory. */
  restart(): Promise<void>;
}

export const call: CallContext = {
  actor: "uid:1000",
  signal: new AbortController().signal,
  requestId: "test",
};

/** An engine over fake sandboxes, in a directory of its own. */
export async function openRig(settings: Partial<EngineSettings> = {}): Promise<Rig> {
  const home = mkdtempSync(join(tmpdir(), "caisson-engine-"));
  const driver = new AdoptableDriver();
  let parts = await openParts(home, driver, settings);
  return {
    home,
    driver,
    get store() {
      return parts.store;
    },
    get engine() {
      return parts.engine;
    },
    async restart() {
      await parts.abandon();
      parts = await openParts(home, driver, settings);
    },
    async [Symbol.asyncDispose]() {
      await parts.engine.close();
      await parts.store.close();
      for (const { die } of driver.alive.values()) await die("the test is over");
      rmSync(home, { recursive: true, force: true });
    },
  };
}

async function openParts(home: string, driver: AdoptableDriver, settings: Partial<EngineSettings>) {
  const store = await openSqliteStore({ file: join(home, "log.db") });
  const pool = new Pool({
    drivers: [driver],
    max: 0,
    async prepare(place) {
      const dir = join(home, "sandboxes", place);
      mkdirSync(dir, { recursive: true });
      makeLayer(dir);
      return { dir, cgroups: [] };
    },
    onLaunched() {},
    async onGone(place) {
      await rm(join(home, "sandboxes", place), { recursive: true, force: true });
    },
  });
  const engine = await openEngine({
    home,
    store,
    drivers: [driver],
    pool,
    cgroups: { cgroups: undefined, reason: "the test has none" },
    openGuest: (launched, sinks) => openGuest(() => launched.connect(), { sinks, ended: launched.ended }),
    guest: "/nonexistent",
    trees: {
      async remove(path) {
        await rm(path, { recursive: true, force: true });
        return 0;
      },
      size: async (path) => statSync(path).size,
      measure: async (path) => ({ bytes: statSync(path).size, files: 1 }),
    },
    settings,
  });
  return {
    store,
    engine,
    async abandon() {
      await engine.close();
      await store.close();
    },
  };
}
