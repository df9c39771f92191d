import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { layOut } from "./fixture.ts";
import { judge, manifest } from "./manifest.ts";
import type { Wall } from "./wall.ts";

/** Every probe behind one wall, with and without the syscall groups that can be asked for. */
export function probe(wall: Wall, account: { uid: number; gid: number }): void {
  for (const syscalls of [[], ["debug"], ["nested"]]) {
    const title = syscalls.length > 0 ? `${wall.name} with ${syscalls}` : wall.name;
    describe(title, { timeout: 300_000 }, () => {
      for (const program of manifest.probes) {
        it(`${program}: every attempt ends as the manifest says, and the host is unchanged`, async () => {
          await using fixture = await layOut(account);
          const { exitCode, output, complaint } = await wall.run({ fixture, probe: program, syscalls });
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
