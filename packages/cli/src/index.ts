export { warm } from "./commands/table.ts";
export { main } from "./invoke.ts";
export type { DaemonControl, DaemonStatus, Host } from "./io/host.ts";
export type { Io, Sink, Size } from "./io/io.ts";
