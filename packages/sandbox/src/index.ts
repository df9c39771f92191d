export type { Guest, GuestFiles, OutputSink, SealInit, StartInit } from "./link/guest.ts";
export { openGuest } from "./link/open.ts";
export type { OpenOptions } from "./link/options.ts";
export { LinkViolation } from "./link/violation.ts";
export type { Kind } from "./pool/entry.ts";
export { Pool, type PoolOptions, type Taken } from "./pool/pool.ts";
export { newSandboxId } from "./pool/sandbox-id.ts";
