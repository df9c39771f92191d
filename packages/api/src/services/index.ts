import type { ServedService } from "@caisson/contract";
import type { Engine } from "@caisson/sandbox";
import type { Store } from "@caisson/store";
import type { Keys } from "../auth/keys.ts";
import type { Log, SystemInfo } from "../deps.ts";
import { approvalService } from "./approval.ts";
import { eventService } from "./event.ts";
import { fileService } from "./file.ts";
import { imageService } from "./image.ts";
import { keyService } from "./key.ts";
import { networkService } from "./network.ts";
import { portService } from "./port.ts";
import { processService } from "./process.ts";
import { Repeats } from "./repeats.ts";
import { runService } from "./run.ts";
import { sandboxService } from "./sandbox.ts";
import { secretService } from "./secret.ts";
import { sessionService } from "./session.ts";
import { snapshotService } from "./snapshot.ts";
import { systemService } from "./system.ts";
import { workspaceService } from "./workspace.ts";

export interface ServiceDeps {
  engine: Engine;
  store: Store;
  keys: Keys;
  system: SystemInfo;
  log: Log;
}

/** Every service of the public contract. */
export function createServices({ engine, store, keys, system, log }: ServiceDeps): ServedService[] {
  const repeats = new Repeats(store);
  return [
    sandboxService(engine, repeats),
    sessionService(engine),
    processService(engine),
    portService(engine),
    runService(engine, log),
    fileService(engine),
    workspaceService(engine),
    approvalService(engine, repeats),
    secretService(engine),
    imageService(engine),
    snapshotService(engine),
    networkService(engine, repeats),
    eventService(store),
    systemService(engine, system, repeats),
    keyService(keys),
  ];
}
