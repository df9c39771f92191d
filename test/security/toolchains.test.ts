// Toolchains of a home directory full of secrets: programs come in, and nothing of what lies beside them.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createServer, type Server } from "node:net";
import { after, before, describe, it } from "node:test";
import { connect } from "@caisson/client";
import { canary, secretFiles, TestHome } from "../../packages/sandbox/src/toolchains/testing/home.ts";
import { type Account, accounts, startDaemon, type TestDaemon } from "../support/daemon.ts";
import { Launcher } from "../support/launcher.ts";

const system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** A program of each kind of toolchain, and the entry of the PATH that leads to it. */
const programs: Readonly<Record<string, string>> = {
  ".nvm/versions/node/v22.1.0/bin": "nvm-program",
  ".volta/bin": "volta-program",
  ".npm-global/bin": "npm-global-program",
  ".bun/bin": "bun-program",
  ".cargo/bin": "cargo-program",
  ".pyenv/shims": "pyenv-program",
  "miniforge3/bin": "conda-program",
  "sdk/go1.26.1/bin": "go-program",
  "go/bin": "gopath-program",
  ".sdkman/candidates/java/current/bin": "sdkman-program",
  ".asdf/shims": "asdf-program",
  ".local/share/mise/shims": "mise-program",
  ".local/bin": "local-program",
};

/** Secrets that some tools keep among their programs. */
const secretsAmongPrograms = [
  ".nvm/versions/node/v22.1.0/etc/npmrc",
  ".nvm/versions/node/v22.1.0/lib/node_modules/npm/npmrc",
  ".volta/tools/image/node/20.1.0/etc/npmrc",
  ".npm-global/etc/npmrc",
  ".npm-global/lib/node_modules/npm/npmrc",
  ".bun/install/cache/private/index.js",
  ".codex/packages/secret",
  ".local/share/claude/secret",
  ".cargo/registry/index/private/config.json",
  ".pyenv/versions/3.12.1/pip.conf",
  "miniforge3/.condarc",
  "miniforge3/pip.conf",
  "go/pkg/mod/cache/vcs/private/config",
  ".asdf/installs/tool/1.0.0/etc/npmrc",
  ".asdf/plugins/private/.git/config",
  ".local/share/mise/installs/tool/1.0.0/pip.conf",
  ".local/share/uv/tools/ruff/uv-receipt.toml",
];

function fill(home: TestHome): void {
  const [nvm, volta] = [".nvm/versions/node/v22.1.0/bin", ".volta/tools/image"];
  for (const name of ["node", "nvm-program"]) home.program(`${nvm}/${name}`);
  home.program(`${volta}/node/20.1.0/bin/node`);
  home.program(`${volta}/packages/volta-program/bin/volta-program`);
  home.file(".volta/tools/user/platform.json", '{"node":{"runtime":"20.1.0"}}');
  home.program(".volta/bin/volta-shim");
  for (const name of ["rustup", "cargo", "cargo-program"]) home.program(`.cargo/bin/${name}`);
  home.program(".rustup/toolchains/stable/bin/rustc");
  home.program(".pyenv/libexec/pyenv");
  home.program(".pyenv/shims/pyenv-program");
  home.program(".pyenv/versions/3.12.1/bin/python");
  home.program("miniforge3/bin/conda-program");
  home.file("miniforge3/conda-meta/history", "");
  for (const name of ["go", "go-program"]) home.program(`sdk/go1.26.1/bin/${name}`);
  home.file("sdk/go1.26.1/src/runtime/runtime.go", "");
  home.program("go/bin/gopath-program");
  home.program(".sdkman/candidates/java/21-tem/bin/sdkman-program");
  home.link(".sdkman/candidates/java/current", "21-tem");
  home.program(".asdf/shims/asdf-program");
  home.program(".asdf/installs/tool/1.0.0/bin/asdf-program");
  home.program(".local/share/mise/shims/mise-program");
  home.program(".local/share/mise/installs/tool/1.0.0/bin/mise-program");
  home.program(".local/share/uv/python/cpython-3.13/bin/python3.13");
  home.program(".local/bin/local-program");
  home.program(".local/share/claude/versions/2.1.0");
  home.link(".local/bin/claude", home.path(".local/share/claude/versions/2.1.0"));
  home.program(".codex/packages/standalone/releases/1.0.0/bin/codex");
  home.link(".local/bin/codex", home.path(".codex/packages/standalone/releases/1.0.0/bin/codex"));
  home.program(".npm-global/lib/node_modules/npm-global-program/cli");
  home.link(".npm-global/bin/npm-global-program", "../lib/node_modules/npm-global-program/cli");
  home.program(".bun/bin/bun-program");
  for (const file of secretsAmongPrograms) home.secret(file);
}

for (const account of accounts()) suite(account);

function suite(account: Account): void {
  describe(`toolchains of a home with secrets as ${account.name}`, { timeout: 240_000 }, () => {
    let daemon: TestDaemon;
    let home: TestHome;
    let caisson: Launcher;
    let socket: Server;
    before(async () => {
      home = new TestHome();
      fill(home);
      socket = createServer((client) => client.end("host\n"));
      await new Promise<void>((resolve) => socket.listen(home.path(".cargo/bin/host.sock"), resolve));
      spawnSync("chmod", ["-R", "go-rwx", home.dir]);
      spawnSync("chown", ["-R", `${account.uid}:${account.gid}`, home.dir]);
      // Of somebody else, who lets nobody in.
      spawnSync("install", ["-d", "-m", "700", home.path(".cargo/bin/closed")]);
      daemon = await startDaemon({ account, env: { PATH: system } });
      caisson = new Launcher(daemon);
    });
    after(async () => {
      await daemon[Symbol.asyncDispose]();
      socket.close();
      home[Symbol.dispose]();
    });
    const run = (script: string, options: string[] = [], from = home) => {
      const path = [...Object.keys(programs).map((entry) => from.path(entry)), system].join(":");
      const env = { PATH: path, HOME: from.dir };
      return caisson.run(["run", "--no-workspace", ...options, "--", "sh", "-c", script], { env });
    };

    it("finds each toolchain's programs by the caller's PATH and runs them", async () => {
      const { out, err } = await run(Object.values(programs).join("; "));
      const names = out.trim().split("\n");
      assert.deepEqual(
        names.map((path) => path.split("/").at(-1)),
        Object.values(programs),
        err,
      );
      for (const path of names) assert.ok(path.startsWith(`${home.dir}/`), path);
    });

    it("finds agents where their own installers put them", async () => {
      const { out, err } = await run("claude; codex");
      assert.equal(out, `${home.path(".local/bin/claude")}\n${home.path(".local/bin/codex")}\n`, err);
    });

    it("shows no secret, by any name", async () => {
      const files = [...secretFiles, ...secretsAmongPrograms].map((file) => home.path(file));
      const reads = files.map((file) => `cat '${file}' 2>/dev/null && echo READ '${file}'`).join("\n");
      const { out } = await run(
        `${reads}\ngrep -rl ${canary} '${home.dir}' /home /root /tmp /run 2>/dev/null\ntrue`,
      );
      assert.equal(out, "");
    });

    it("shows no more of the home than toolchains", async () => {
      const { out } = await run(
        `ls -A '${home.dir}' '${home.path(".cargo")}' '${home.path(".local/share")}'`,
      );
      for (const name of [".ssh", ".aws", ".config", ".npmrc", "registry", "keyrings"])
        assert.doesNotMatch(out, new RegExp(`^${name.replace(".", "\\.")}$`, "m"));
    });

    it("lets nothing be written into them", async () => {
      const script = `cd '${home.path(".cargo/bin")}' && { echo x > new; echo x >> cargo; rm cargo; mv cargo old; chmod 777 cargo; } 2>/dev/null; cat cargo; ls`;
      const { out } = await run(script);
      assert.match(out, /^#!\/bin\/sh\necho "\$0"\ncargo\n/);
      assert.doesNotMatch(out, /^(new|old)$/m);
    });

    /** Runs every program, looks for secrets, and tries to change something. */
    const tryAll = async (options: string[], from: TestHome) => {
      const write = `cd '${from.path(".cargo/bin")}' && { echo x > new; echo x >> cargo; rm cargo; }`;
      const script = `${Object.values(programs).join("; ")}; grep -rl ${canary} '${from.dir}'; ${write}; cat cargo`;
      const { out, err } = await run(`{ ${script}; } 2>/dev/null; ls`, options, from);
      const lines = out.trim().split("\n");
      const names = lines.splice(0, Object.keys(programs).length).map((path) => path.split("/").at(-1));
      assert.deepEqual(names, Object.values(programs), err);
      return lines;
    };

    it("does the same in gVisor, below directories that are private there", async () => {
      // Owners are not mapped there: what only they may read stays theirs.
      using open = new TestHome();
      fill(open);
      spawnSync("chmod", ["-R", "go+rX", open.dir]);
      const lines = await tryAll(["--tier", "gvisor"], open);
      assert.deepEqual(lines, ["#!/bin/sh", 'echo "$0"', "cargo", "cargo-program", "rustup"]);
    });

    it("does the same in a machine, from a disk, for who asks", async () => {
      const { out } = await run("command -v cargo-program; echo $PATH", ["--tier", "microvm"]);
      assert.ok(!out.includes(home.dir), out);
      const asked = ["--tier", "microvm", "--toolchains", "auto"];
      const lines = (await tryAll(asked, home)).filter((name) => name !== "closed");
      // The name of a socket is on the disk, and nobody behind it.
      assert.deepEqual(lines, ["#!/bin/sh", 'echo "$0"', "cargo", "cargo-program", "host.sock", "rustup"]);
      const socket = `import socket; socket.socket(socket.AF_UNIX).connect("${home.path(".cargo/bin/host.sock")}")`;
      assert.match((await run(`/usr/bin/python3 -c '${socket}'`, asked)).err, /ConnectionRefused/);
    });

    it("reaches no socket of the host through them", async () => {
      const connect = `import socket; socket.socket(socket.AF_UNIX).connect("${home.path(".cargo/bin/host.sock")}")`;
      const { code, err } = await run(`/usr/bin/python3 -c '${connect}'`);
      assert.notEqual(code, 0);
      assert.match(err, /ConnectionRefused|No such device/);
    });

    it("goes by the daemon's own PATH when the caller brings none", async () => {
      await using client = await connect({ socket: daemon.socket });
      await using box = await client.create({ toolchains: "auto" });
      const { stdout } = await box.run(["sh", "-c", "echo $PATH"]);
      assert.ok(!stdout.text.includes(home.dir), stdout.text);
    });

    it("says in the report which ones came in", async () => {
      const path = [home.path(".cargo/bin"), system].join(":");
      const env = { PATH: path, HOME: home.dir };
      const said = await caisson.json(["create"], ["--no-workspace"], { env });
      const report = said.enforced.mechanisms.find(({ name }: { name: string }) => name === "toolchains");
      assert.equal(report.state, "enforced");
      assert.match(report.detail, /^rustup, uv; credentials/);
    });

    it("shows none to the restrictive profile, nor when they are switched off", async () => {
      const restrictive = await run("command -v cargo-program; echo $PATH", ["--profile", "restrictive"]);
      assert.ok(!restrictive.out.includes(home.dir), restrictive.out);
      const off = await run("command -v cargo-program; echo $PATH", ["--toolchains", "off"]);
      assert.ok(!off.out.includes(home.dir), off.out);
    });
  });
}
