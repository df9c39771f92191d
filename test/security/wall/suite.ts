import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type Fixture, layOut } from "./fixture.ts";
import { judge, manifest } from "./manifest.ts";
import type { OpenWall, Wall } from "./wall.ts";

/** Every probe behind one wall, each in a sandbox of its own, with and without the syscall groups that can be asked for. */
export function probe(wall: Wall, account: { uid: number; gid: number }): void {
  for (const syscalls of [[], ["debug"], ["nested"]]) {
    const title = syscalls.length > 0 ? `${wall.name} with ${syscalls}` : wall.name;
    describe(title, { timeout: 300_000 }, () => {
      let fixture: Fixture;
      let open: OpenWall;
      before(async () => {
        fixture = await layOut(account);
        open = await wall.open({ fixture, syscalls });
      });
      after(async () => {
        await open?.[Symbol.asyncDispose]();
        await fixture?.[Symbol.asyncDispose]();
      });
      for (const program of manifest.probes) {
        it(`${program}: every attempt ends as the manifest says, and the host is unchanged`, async () => {
          const { exitCode, output, complaint } = await open.run(program);
          assert.equal(exitCode, 0, complaint);
          const wrong = judge(program, output, { syscalls, has: wall.has }).filter(({ holds }) => !holds);
          assert.deepEqual(
            wrong.map(
              ({ case: name, title, got, expected }) => `${name} (${title}): ${got}, not ${expected}`,
            ),
            [],
          );
          assert.deepEqual(fixture.damage(), []);
        });
      }
    });
  }
}
