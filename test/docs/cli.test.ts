// Every example of docs/cli.md runs, each by itself: a session `work` and a run with changes are there.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Engine, whyNoEngine } from "../support/engine.ts";
import { busyboxLayer, writeLayout } from "../support/oci-image.ts";
import { documents } from "./support/documents.ts";
import { engineWithImage, takesFromEngine } from "./support/engine-with-image.ts";
import { Newcomer } from "./support/newcomer.ts";

const [reference] = documents(["docs/cli.md"]);
const lines = reference!.fences
  .filter(({ language }) => language === "sh")
  .flatMap(({ text }) => text.split("\n"))
  .filter((line) => line !== "" && !line.startsWith("#"));

/** Examples that stay until they are left: it is enough that they begin. */
const endless = /(logs -f|attach work|port forward|events -f|files watch|daemon logs -f)/;
const interactive = /(run|exec) -it /;

const noEngine = whyNoEngine();
let engine: Engine | undefined;
let newcomer: Newcomer;
before(async () => {
  engine = noEngine ? undefined : await engineWithImage();
  newcomer = await Newcomer.arrive(engine?.env);
});
after(async () => {
  await newcomer?.[Symbol.asyncDispose]();
  await engine?.[Symbol.asyncDispose]();
});

/** `tools.tar`, and the image that comes of it. */
function prepareImage(): void {
  const layout = join(newcomer.dir, "..", "layout");
  writeLayout(layout, { layers: [busyboxLayer()], config: { Env: ["PATH=/bin"] } });
  newcomer.run(`tar -C ${layout} -cf tools.tar . && caisson image import tools.tar --name tools:1`);
}

/** What an example may rely on. Returns the id of a run that changed something. */
function prepare(): string {
  newcomer.run("caisson run --session work -- sh -c 'mkdir -p dist; date +%N > dist/a; date +%N > src/b'");
  newcomer.run("caisson run -- sh -c 'mkdir -p .vscode; date +%N > .vscode/settings.json; date +%N > src/c'");
  return latest("--all");
}

function latest(...options: string[]): string {
  return newcomer.run(`caisson ls --quiet ${options.join(" ")}`).split("\n")[0]!;
}

for (const line of lines) {
  test(`\`${line}\` works`, { skip: takesFromEngine.test(line) && noEngine }, () => {
    if (line.includes("image")) prepareImage();
    const box = prepare();
    if (line.includes("undo ")) newcomer.run(`caisson apply ${box}`);
    if (line.includes("port wait")) newcomer.run("caisson exec -d work -- python3 -m http.server 8080");
    const living = latest();
    const script = line.replace(/sb_[0-9a-z]{16}/, line.includes("exec") ? living : box);
    if (endless.test(line)) {
      newcomer.run("caisson exec --detach work -- sh -c 'echo begun; sleep 2'");
      const { status, stdout } = newcomer.try(`timeout 1 ${script} || test $? = 124`);
      assert.equal(status, 0, stdout);
    } else if (interactive.test(line)) {
      newcomer.run(`script --quiet --return --command '${script}' /dev/null`, { input: "exit\n" });
    } else if (line.includes("completion zsh")) {
      const printed = newcomer.run("caisson completion zsh");
      assert.match(printed, /compdef/);
      const zsh = spawnSync("zsh", ["-n"], { input: printed, encoding: "utf8" });
      if (!zsh.error) assert.equal(zsh.status, 0, zsh.stderr);
    } else {
      newcomer.run(script);
    }
  });
}

test("no example is missed", () => assert.ok(lines.length >= 40, `only ${lines.length} found`));
