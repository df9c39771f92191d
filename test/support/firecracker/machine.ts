// What is behind the peer's API: a real guest in bubblewrap, reached as Firecracker lets a machine be reached.
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, chownSync, copyFileSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bubblewrapArgv } from "../../../packages/sandbox/src/driver/bubblewrap/argv.ts";
import { readHostRoot } from "../../../packages/sandbox/src/driver/bubblewrap/host-root.ts";

export class PeerMachine {
  readonly #door: string;
  readonly #scratch: string;
  readonly #connections = new Set<Socket>();
  readonly #heard: (word: string) => void;
  #guest: ChildProcess | undefined;
  #assigned = 1 << 30;

  /** @param heard is told the first of the host's words to the machine's first process */
  constructor(heard: (word: string) => void) {
    this.#heard = heard;
    this.#scratch = mkdtempSync(join(tmpdir(), "firecracker-peer-"));
    chmodSync(this.#scratch, 0o755);
    this.#door = join(this.#scratch, "door");
    process.on("exit", () => {
      this.#guest?.kill("SIGKILL");
      rmSync(this.#scratch, { recursive: true, force: true });
    });
  }

  async start(guest: string, socket: string, port: number, uid: number): Promise<void> {
    const program = join(this.#scratch, "guest");
    copyFileSync(guest, program);
    chmodSync(program, 0o755);
    const server = createServer();
    await listening(server, `${this.#door}.new`);
    const { fd } = (server as unknown as { _handle: { fd: number } })._handle;
    const words = bubblewrapArgv("bwrap", await readHostRoot());
    const argv = words.map((word) => word.replaceAll("{guest}", program).replaceAll("{socket}", "3"));
    this.#guest = spawn(argv[0]!, argv.slice(1), { stdio: ["ignore", 1, 2, fd], cwd: "/", uid, gid: uid });
    // The guest has its own copy; connections must not be taken here. Closing removes only the old name.
    renameSync(`${this.#door}.new`, this.#door);
    server.close();
    this.#guest.once("exit", (code) => {
      console.log(`caisson: the guest ended with code ${code}`);
      process.exit(0);
    });
    await this.#serve(socket, port, uid);
  }

  async #serve(socket: string, port: number, uid: number): Promise<void> {
    const server = createServer((host) => {
      host.on("error", () => {});
      this.#connections.add(host);
      host.once("close", () => this.#connections.delete(host));
      host.once("data", (bytes: Buffer) => {
        const asked = /^CONNECT (\d+)\n$/.exec(bytes.toString("latin1"))?.[1];
        if (Number(asked) === port) this.#relay(host);
        else if (Number(asked) === port + 1) this.#converse(host);
        // Nobody listens there.
        else host.destroy();
      });
    });
    await listening(server, socket);
    chownSync(socket, uid, uid);
  }

  #relay(host: Socket): void {
    const guest = connect(this.#door);
    guest.on("error", () => host.destroy());
    host.write(`OK ${this.#assigned++}\n`);
    host.pipe(guest).pipe(host);
    host.once("close", () => guest.destroy());
  }

  /** As the machine's first process answers (guest/src/vm/control.rs). */
  #converse(host: Socket): void {
    host.write(`OK ${this.#assigned++}\n`);
    host.setEncoding("utf8").on("data", (text: string) => {
      for (const line of text.split("\n").filter(Boolean)) {
        const token =
          /^ping ([0-9a-f]{64})$/.exec(line)?.[1] ??
          /^(?:clock|limit) ([0-9a-f]{64}) \d+$/.exec(line)?.[1] ??
          /^open ([0-9a-f]{64}) [0-9a-f]{128} \d{19}$/.exec(line)?.[1];
        if (token === undefined) continue;
        this.#heard(line.split(" ")[0]!);
        host.write(`ok ${token}\n`);
      }
    });
  }

  hold(): void {
    this.#guest?.kill("SIGSTOP");
    for (const host of this.#connections) host.pause();
  }

  release(): void {
    this.#guest?.kill("SIGCONT");
    for (const host of this.#connections) host.resume();
  }

  /** Saving a machine resets its device: all connections end. */
  cut(): void {
    for (const host of this.#connections) host.destroy();
  }
}

function listening(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => server.once("error", reject).listen(path, resolve));
}
