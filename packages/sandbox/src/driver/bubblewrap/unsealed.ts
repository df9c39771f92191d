/**
 * Starts one unsealed sandbox by hand, without daemon and keeper, to try the guest against:
 *
 *   node packages/sandbox/src/driver/bubblewrap/unsealed.ts GUEST_BINARY SOCKET [UID]
 *
 * The guest listens on SOCKET until it exits; its exit code is printed. Root must name a UID, and
 * the binary must lie where that uid can read it.
 */
import { spawn } from "node:child_process";
import { renameSync } from "node:fs";
import { createServer } from "node:net";
import { bubblewrapArgv } from "./argv.ts";
import { readHostRoot } from "./host-root.ts";

const [guest, socket, uid] = process.argv.slice(2);
if (guest === undefined || socket === undefined || (process.getuid?.() === 0 && uid === undefined)) {
  console.error("usage: unsealed.ts GUEST_BINARY SOCKET [UID]");
  process.exit(2);
}

const server = createServer().listen(`${socket}.new`, async () => {
  const listening = (server as unknown as { _handle: { fd: number } })._handle.fd;
  const argv = bubblewrapArgv("bwrap", await readHostRoot()).map((word) =>
    word.replaceAll("{guest}", guest).replaceAll("{socket}", "3"),
  );
  const child = spawn(argv[0] as string, argv.slice(1), {
    stdio: ["ignore", "inherit", "inherit", listening],
    cwd: "/",
    ...(uid === undefined ? {} : { uid: Number(uid), gid: Number(uid) }),
  });
  // The guest has its own copy; connections must not be taken here. Closing removes only the old name.
  renameSync(`${socket}.new`, socket);
  server.close();
  console.error(`bwrap is ${child.pid}; the guest listens on ${socket}`);
  child.on("exit", (code, signal) => console.error(`ended: ${signal ?? code}`));
});
