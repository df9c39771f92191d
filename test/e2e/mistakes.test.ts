// What people get wrong: each ends with a sentence that names it, a next step, and the exit code that is documented.
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { self, startDaemon, type TestDaemon, temporaryDirectory } from "../support/daemon.ts";
import { Launcher } from "../support/launcher.ts";

const cases: [line: string, code: number, says: RegExp][] = [
  ["rnu -- true", 2, /no command rnu; did you mean run\?\nSee `caisson/],
  ["keys crate x", 2, /no command keys crate; did you mean keys create\?/],
  ["run --memroy 1g -- true", 125, /no option --memroy; did you mean --memory\?\nSee `caisson run --help`/],
  ["run --memory lots -- true", 125, /lots is not a size; write it like 512m/],
  ["run", 125, /COMMAND is missing/],
  ["run -- nosuchprogram", 127, /^caisson: there is no program nosuchprogram in PATH\nCheck/],
  ["run -- ./plain", 126, /\.\/plain cannot be run: permission denied/],
  ["run --profile nosuch -- true", 125, /no profile "nosuch"; there are restrictive/],
  ["run --image nosuch -- true", 125, /no image "nosuch"\nList images with `caisson image ls`/],
  ["run --driver nosuch -- true", 125, /no driver "nosuch"; there are: bubblewrap/],
  ["run --tier strong -- true", 125, /strong is not one of container, gvisor/],
  ["run --workspace /nosuch -- true", 125, /workspace\.exists: there is no directory \/nosuch/],
  ["run --workspace / -- true", 125, /workspace\.root: /],
  ["run --secret NOPE -- true", 125, /no secret "NOPE"\nList secrets/],
  ["run --env-file nofile -- true", 125, /cannot read nofile: no such file/],
  ["run --user root -- id", 125, /a single user, who is not root/],
  ["exec nobox -- true", 125, /no living session nobox\nList sandboxes and sessions with `caisson ls`/],
  ["exec sb_0000000000000000 -- true", 125, /no such sandbox\nList sandboxes/],
  ["diff", 1, /nothing that ran in this directory has changed anything/],
  ["undo", 1, /nothing that ran in this directory has been applied/],
  ["cp nobox:/a b", 1, /no living session nobox/],
  ["create --session a/b", 1, /a session's name must be 1 to 128 characters/],
  ["keys revoke nosuch", 1, /no key of that name\nList keys/],
  ["snapshot rm nosuch", 1, /no such snapshot or template/],
  ["snapshot import nosuch.tar", 2, /cannot import nosuch.tar: it is not there/],
  ["snapshot import plain", 1, /not a tar archive|cut off/],
  ["port forward x 99999", 2, /99999 is no port/],
  ["events --from x", 2, /--from: x is not a whole number/],
  ["config trust", 1, /no caisson\.yaml in that directory/],
];

describe("mistakes", { timeout: 60_000 }, () => {
  let daemon: TestDaemon;
  const project = temporaryDirectory(self());
  before(async () => {
    daemon = await startDaemon();
    writeFileSync(join(project, "plain"), "no program");
  });
  after(async () => {
    await daemon[Symbol.asyncDispose]();
    rmSync(project, { recursive: true });
  });

  for (const [line, code, says] of cases) {
    it(`\`caisson ${line}\` is told what is wrong`, async () => {
      const said = await new Launcher(daemon, project).run(line.split(" "));
      assert.match(said.err, says);
      assert.deepEqual([said.code, said.out], [code, ""]);
      assert.doesNotMatch(said.err, /\bat .*\.ts:|Error:/);
    });
  }
});
