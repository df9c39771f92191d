// The host edits its project while a sandbox does: nothing of the host's is lost, and what is applied is what the sandbox saw.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Applied } from "@caisson/client";
import { accounts } from "../../support/daemon.ts";
import { edits } from "./edits.ts";
import { makeProject, type Subject, sameTree, subject } from "./project.ts";

const { CAISSON_SEED, CAISSON_ROUNDS } = process.env;
const first = Number(CAISSON_SEED ?? (CAISSON_ROUNDS ? Math.floor(Math.random() * 1e9) : 417_203_556));
const rounds = Number(CAISSON_ROUNDS ?? (CAISSON_SEED ? 1 : 3));

/** Kind, mode, target and content of everything, each behind its name; names may hold anything but NUL. */
const precise = `
  find . -mindepth 1 -printf '%P\\0%y\\0%m\\0%l\\0'
  printf '\\0'
  find . -type f -perm -u=r -print0 | xargs -0 -r sha256sum -bz --
`;

/** What is at each name. */
type Entries = Map<string, string>;

function parse(text: string): Entries {
  const entries: Entries = new Map();
  const fields = text.split("\0");
  let at = 0;
  for (; fields[at] !== ""; at += 4) {
    const [name, kind, mode, target] = fields.slice(at, at + 4) as [string, string, string, string];
    entries.set(name, kind === "l" ? `link to ${target}` : `${kind} ${mode}`);
  }
  for (const line of fields.slice(at + 1)) {
    const [, hash, name] = /^([0-9a-f]{64}) \*\.\/(.*)$/s.exec(line) ?? [];
    if (name !== undefined) entries.set(name, `${entries.get(name)} ${hash}`);
  }
  return entries;
}

/** A listing's bytes as results have them: what is no UTF-8 replaced. */
const readable = (name: string) => Buffer.from(name, "latin1").toString();

/** Does one lie in, or hold, the other? */
const related = (one: string, other: string) =>
  one === other || one.startsWith(`${other}/`) || other.startsWith(`${one}/`);

interface Round {
  /** The project before, as the host made it, as the sandbox saw it, and afterwards. */
  old: Entries;
  host: Entries;
  sandbox: Entries;
  now: Entries;
  result: Applied;
}

/** Everything that is not as it should be. */
function wrong({ old, host, sandbox, now, result }: Round): string[] {
  const found: string[] = [];
  const { applied = [], ...others } = Object.groupBy(result.files, ({ outcome }) => outcome);
  const done = new Set(applied.map(({ path }) => path));
  const left = Object.values(others).flatMap((files) => files.map(({ path }) => path));
  for (const name of new Set([...old, ...host, ...sandbox, ...now].map(([name]) => name))) {
    const [was, theirs, seen, is] = [old, host, sandbox, now].map((entries) => entries.get(name));
    const say = (what: string) =>
      found.push(`${JSON.stringify(name)} ${what}: was ${was}, host ${theirs}, sandbox ${seen}, is ${is}`);
    const isDirectory = (entry: string | undefined) => entry?.startsWith("d ") ?? false;
    // A directory may stay for what is in it, and come back for it.
    const isHolder = isDirectory(is) && [...now.keys()].some((other) => other.startsWith(`${name}/`));
    // It may be gone when nothing of the host's is left in it; of two modes, one is lost.
    const isHolderOnly = isDirectory(theirs) && seen !== was;
    if (theirs !== was && theirs !== undefined && is !== theirs && !isHolderOnly)
      say("lost the host's change");
    if (seen === was && theirs !== undefined && is !== theirs) say("was changed by nobody inside");
    if (done.has(readable(name)) && is !== seen && !isHolder) say("was not applied as it was seen");
    if (
      seen !== was &&
      theirs === was &&
      is !== seen &&
      !isHolder &&
      !left.some((other) => related(readable(name), other))
    )
      say("was dropped silently");
  }
  return found;
}

for (const [account, mode] of accounts().flatMap((who) =>
  (["overlay", "copy"] as const).map((how) => [who, how] as const),
)) {
  describe(`a project as ${mode} that changes meanwhile, as ${account.name}`, {
    timeout: 200_000 + rounds * 20_000,
  }, () => {
    let at: Subject;
    before(async () => {
      at = await subject(account);
    });
    after(() => at[Symbol.asyncDispose]());

    it("keeps what the host did, applies what the sandbox saw, says what it left, and takes it back", async () => {
      for (let seed = first; seed < first + rounds; seed++) {
        using project = makeProject(account, edits(seed ^ 0x5eed, 80));
        const look = () => parse(project.look(precise));
        const old = look();
        await using box = await at.client.create({ workspace: { dir: project.dir, mode } });
        const inside = `{ ${edits(seed, 40)}\n} > /dev/null; ${precise}`;
        const { code, stdout, stderr } = await box.run(["bash", "-c", inside], { cwd: project.dir });
        assert.equal(code, 0, stderr.text);
        const sandbox = parse(Buffer.from(stdout.bytes).toString("latin1"));
        // A directory that is moved or gets another mode, and then an entry, looks as if it only got the entry.
        project.sh(edits(seed ^ 0x4057, 15, { whole: false }));
        project.sh(edits(seed ^ 0x4058, 1));
        const [host, listed] = [look(), project.list()];
        const result = await box.workspace.apply();
        const round = { old, host, sandbox, now: look(), result };
        assert.deepEqual(wrong(round), [], `seed ${seed}`);
        if (result.applyId) await box.workspace.undo();
        sameTree(project.list(), listed, `seed ${seed}: taken back`);
      }
    });
  });
}
