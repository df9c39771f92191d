import { hash } from "node:crypto";
import { mkdirSync, realpathSync } from "node:fs";
import type { Surroundings } from "@caisson/contract";
import type { Store } from "@caisson/store";
import { allDrivers, engineSocket as findEngine } from "../driver/index.ts";
import { removeTrialDirectories } from "../driver/trial-directory.ts";
import { Keeper } from "../keeper/index.ts";
import { findCgroups, outerLimits } from "../limits/index.ts";
import { openGuest } from "../link/open.ts";
import { Pool } from "../pool/pool.ts";
import { preparedLimits } from "../profiles/index.ts";
import type { Engine } from "./engine.ts";
import { openEngine } from "./index.ts";
import type { CompleteSpec, EngineSettings, Log } from "./parts.ts";
import { makeLayer } from "./workspace.ts";

export interface SandboxesOptions {
  /** The data directory. */
  home: string;
  /** The guest binary, and the build that guests must be of. */
  guest: string;
  build: string;
  store: Store;
  settings?: Partial<EngineSettings>;
  complete?: CompleteSpec;
  /** TCP ports on which the daemon itself listens; no sandbox may reach them. */
  ownPorts?: () => readonly number[];
  /** The PATH and home directory of callers that bring none. */
  surroundings?: Surroundings;
  /** Sandboxes kept warm at least and at most. */
  pool?: { min: number; max: number };
  /** The Docker engine's Unix socket; empty: the environment's, the Docker context's, or a usual place. */
  dockerHost?: string;
  /** Where microVMs' images and templates are (default: in the data directory), and how much memory each has. */
  microvm?: { store?: string; memoryBytes?: number; programs?: string };
  log?: Log;
}

/** The engine with everything below it: keeper, drivers, pool. `close` lets go of the sandboxes; they live on. */
export async function openSandboxes(options: SandboxesOptions): Promise<Engine> {
  const { guest, build, store, log = () => {} } = options;
  // The keeper follows no link: what it is asked for lies below the real path.
  const home = realpathSync(options.home);
  removeTrialDirectories(home);
  const keeper = new Keeper({ guest });
  const microvm = {
    store: options.microvm?.store || `${home}/microvm`,
    ...(options.microvm?.memoryBytes ? { memoryBytes: options.microvm.memoryBytes } : {}),
    ...(options.microvm?.programs ? { programs: options.microvm.programs } : {}),
    progress: (words: string) => log("info", words),
  };
  const engineSocket = () => findEngine({ host: options.dockerHost ?? "", env: process.env });
  const drivers = allDrivers({ keeper, guest, home, engineSocket, microvm });
  // Daemons of several data directories keep out of each other's groups.
  const found = findCgroups(hash("sha256", home).slice(0, 12));
  const { cgroups } = found;
  const dirOf = (place: string) => `${home}/sandboxes/${place}`;
  const pool = new Pool({
    drivers,
    build,
    ...options.pool,
    async prepare(place, kind) {
      // In the daemon's own directory, which is local: a thread would take longer than the calls do.
      mkdirSync(dirOf(place), { mode: 0o700 });
      makeLayer(dirOf(place));
      const driver = drivers.find(({ name }) => name === kind.driver);
      const limits = outerLimits(driver ?? {}, preparedLimits);
      if (driver?.bounder) return { dir: dirOf(place), cgroups: [], limits };
      const group = cgroups?.make(place);
      group?.configure(limits);
      return { dir: dirOf(place), cgroups: [...(group?.procs ?? [])] };
    },
    // The launch log in the sandbox's directory names its process: the janitor goes by that.
    onLaunched() {},
    async onGone(place) {
      await cgroups?.find(place).remove();
      await keeper.removeTree(dirOf(place));
    },
    onRefillFailed: (error) => log("warn", "a sandbox could not be kept warm", { error: String(error) }),
  });
  const engine = await openEngine({
    home,
    guest,
    store,
    drivers,
    pool,
    cgroups: found,
    engineSocket,
    openGuest: (launched, sinks) => openGuest(() => launched.connect(), { sinks, ended: launched.ended }),
    trees: {
      remove: async (path) => Number(await keeper.removeTree(path)),
      size: async (path) => Number((await keeper.treeSize(path)).bytes),
      async measure(path) {
        const { bytes, files } = await keeper.treeSize(path);
        return { bytes: Number(bytes), files: Number(files) };
      },
    },
    ...(options.settings ? { settings: options.settings } : {}),
    ...(options.surroundings ? { surroundings: options.surroundings } : {}),
    ...(options.complete ? { complete: options.complete } : {}),
    ...(options.ownPorts ? { ownPorts: options.ownPorts } : {}),
    log,
  });
  prewarm(pool, drivers, log);
  const close = engine.close;
  engine.close = async () => {
    await close();
    await keeper.close();
    cgroups?.close();
  };
  return engine;
}

/** The kind that most callers will take waits before the first one comes. */
function prewarm(pool: Pool, drivers: ReturnType<typeof allDrivers>, log: Log): void {
  const [fastest] = drivers;
  if (!fastest) return;
  fastest.probe().then(
    ({ usable }) => usable && pool.prewarm({ driver: fastest.name, image: "host" }),
    (error) => log("warn", "a driver could not be tried", { driver: fastest.name, error: String(error) }),
  );
}
