// A scratch project, a home directory and a fresh daemon, as somebody has them who tries the documents.
import { type SpawnSyncReturns, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root, startDaemon, type TestDaemon } from "../../support/daemon.ts";

const files: Record<string, string> = {
  "package.json":
    '{ "name": "project", "scripts": { "test": "node --version", "start": "node --version" } }\n',
  Makefile: "all:\n\t@echo made\n",
  "build.sh": "#!/bin/sh\necho built\n",
  "data.csv": "a,b\n1,2\n",
  "src/main.txt": "hello\n",
};

export class Newcomer implements AsyncDisposable {
  readonly dir: string;
  readonly daemon: TestDaemon;
  readonly #scratch: string;
  readonly #env: Record<string, string>;

  private constructor(daemon: TestDaemon) {
    this.daemon = daemon;
    this.#scratch = mkdtempSync(join(tmpdir(), "caisson-docs-"));
    this.dir = join(this.#scratch, "project");
    const home = join(this.#scratch, "home");
    mkdirSync(join(home, ".config/fish/completions"), { recursive: true });
    const bin = [join(root, ".caisson/bin"), join(root, "node_modules/.bin")];
    this.#env = { ...daemon.env, HOME: home, PATH: [...bin, process.env.PATH].join(":") };
    // What a daemon that a launcher has started writes to.
    writeFileSync(join(daemon.home, "daemon.log"), "");
    this.#makeProject();
  }

  /** `env`: further variables of the daemon and the shell. */
  static async arrive(env: Record<string, string> = {}): Promise<Newcomer> {
    return new Newcomer(await startDaemon({ env }));
  }

  #makeProject(): void {
    mkdirSync(join(this.dir, "src"), { recursive: true });
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(join(this.dir, name), text, { mode: name.endsWith(".sh") ? 0o755 : 0o644 });
    }
    // The documents call it as people do who stand in a checkout.
    symlinkSync(join(root, ".caisson/bin/caisson"), join(this.dir, "caisson"));
    this.run(
      "git init --quiet . && git config user.name A && git config user.email a@example.org && " +
        "git add . && git commit --quiet --message first",
    );
  }

  /** Runs a script in the project; throws with its output when it fails. */
  run(script: string, options: { input?: string; env?: Record<string, string> } = {}): string {
    const { status, signal, stdout, stderr } = this.try(script, options);
    if (status === 0) return stdout;
    throw new Error(`ended with ${status ?? signal}:\n${script}\n${stdout}${stderr}`);
  }

  try(
    script: string,
    options: { input?: string; env?: Record<string, string> } = {},
  ): SpawnSyncReturns<string> {
    return spawnSync("bash", ["-euo", "pipefail", "-c", script], {
      cwd: this.dir,
      env: { ...this.#env, ...options.env },
      input: options.input ?? "",
      encoding: "utf8",
      timeout: 280_000,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.daemon[Symbol.asyncDispose]();
    rmSync(this.#scratch, { recursive: true, force: true });
  }
}
