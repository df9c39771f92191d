// Completions as the shells themselves carry them out: keys typed into an interactive shell, and what it then runs.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { startDaemon, type TestDaemon } from "../support/daemon.ts";
import { eventually } from "../support/eventually.ts";
import { Launcher } from "../support/launcher.ts";

/** What is typed, and the arguments that `caisson` is then called with. */
const typed: [keys: string, args: string][] = [
  ["caisson versi\t", "version"],
  ["caisson doct\t", "doctor"],
  ["caisson daemon stat\t", "daemon status"],
  ["caisson run --no-workspa\t", "run --no-workspace"],
  ["caisson session l\t", "session ls"],
  ["caisson daemon logs --foll\t", "daemon logs --follow"],
  ["caisson completion fi\t", "completion fish"],
];

describe("completion", { timeout: 120_000 }, () => {
  const dir = mkdtempSync(join(tmpdir(), "caisson-completion-"));
  let daemon: TestDaemon;
  const script = (shell: string) => join(dir, `script.${shell}`);
  before(async () => {
    daemon = await startDaemon();
    const caisson = new Launcher(daemon);
    for (const shell of ["bash", "zsh", "fish"]) {
      const { code, out, err } = await caisson.run(["completion", shell]);
      assert.equal(code, 0, err);
      writeFileSync(script(shell), out);
    }
  });
  after(async () => {
    rmSync(dir, { recursive: true });
    await daemon[Symbol.asyncDispose]();
  });

  it("is a script that each shell can read", () => {
    for (const shell of ["bash", "zsh", "fish"]) {
      const { status, stderr } = spawnSync(shell, ["-n", script(shell)], { encoding: "utf8" });
      assert.equal(status, 0, `${shell}: ${stderr}`);
    }
  });

  it("works in bash", async () => {
    const program = "bash --norc --noprofile -i";
    await press(
      program,
      `bind 'set bell-style none'; caisson() { echo "GOT:$*:"; }; source ${script("bash")}`,
    );
  });

  it("works in zsh", async () => {
    const begin = `autoload -U compinit; compinit -u -D; zstyle ':completion:*' insert-tab false; caisson() { print -r -- "GOT:$*:" }; source ${script("zsh")}`;
    await press("zsh -f -i", begin);
  });

  it("works in fish", () => {
    for (const [keys, args] of typed) {
      const line = keys.trimEnd();
      const { stdout, stderr } = spawnSync(
        "fish",
        ["--no-config", "-c", `source ${script("fish")}; complete -C ${JSON.stringify(line)}`],
        { encoding: "utf8", env: { ...process.env, HOME: dir } },
      );
      const words = stdout
        .split("\n")
        .filter(Boolean)
        .map((candidate) => candidate.split("\t")[0]);
      assert.deepEqual(words, [args.split(" ").at(-1)], `${line}: ${stderr}`);
    }
  });

  it("offers in bash what lies behind a command, files where a value is a file, and programs behind --", () => {
    const complete = (words: string[]) =>
      spawnSync(
        "bash",
        [
          "--norc",
          "-c",
          // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the shell's.
          'source "$0"; COMP_WORDS=(caisson "$@"); COMP_CWORD=$#; _caisson; printf "%s\\n" "${COMPREPLY[@]}"',
          script("bash"),
          ...words,
        ],
        { encoding: "utf8", cwd: dir },
      )
        .stdout.split("\n")
        .filter(Boolean);
    assert.deepEqual(complete(["daemon", "st"]).sort(), ["start", "status", "stop"]);
    assert.ok(complete(["run", "--env-file", "script."]).includes("script.bash"));
    assert.ok(complete(["run", "--", "ech"]).includes("echo"));
    assert.ok(complete([""]).includes("run"));
  });

  /** Types into a shell on a terminal of its own. */
  async function press(program: string, begin: string): Promise<void> {
    const env = { PATH: process.env.PATH!, HOME: dir, TERM: "dumb", PS1: "> ", LANG: "C.UTF-8" };
    const child = spawn("script", ["-qfec", program, "/dev/null"], { env, stdio: ["pipe", "pipe", "pipe"] });
    let screen = "";
    child.stdout.on("data", (data) => {
      screen += data;
    });
    const calls = () => [...screen.matchAll(/GOT:([^:\n]*):\r?\n/g)].map(([, args]) => args!.trim());
    try {
      child.stdin.write(`${begin}\n`);
      child.stdin.write("caisson ready\n");
      await eventually(calls, (seen) => seen.length === 1, { what: screen });
      for (const [index, [keys, args]] of typed.entries()) {
        const shown = screen.length;
        child.stdin.write(keys);
        // The shell takes what is completed for typed; the line is ended when it has been.
        await eventually(
          () => screen.slice(shown),
          (line) => line.includes(`caisson ${args}`),
        );
        child.stdin.write("\n");
        const seen = await eventually(calls, ({ length }) => length >= index + 2);
        assert.equal(seen[index + 1], args, screen);
      }
    } finally {
      child.stdin.end("\u0004exit\n");
      child.kill();
    }
  }
});
