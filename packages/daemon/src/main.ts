// The daemon's entry: as little as possible before the compile cache is on.
import { enableCompileCache } from "node:module";
import { join } from "node:path";
import { dataDirectory } from "./paths.ts";

if (process.platform !== "linux") {
  console.error("caisson: the daemon runs on Linux; on another system, run it in a Linux virtual machine");
  process.exit(1);
}
process.umask(0o077);
// The launcher has switched it on already; no program that the daemon starts is to write there.
enableCompileCache(join(dataDirectory(), "cache"));
delete process.env.NODE_COMPILE_CACHE;

const { runDaemon } = await import("./daemon.ts");
await runDaemon();
