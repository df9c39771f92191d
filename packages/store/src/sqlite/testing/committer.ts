// A process that commits until it is killed: every acknowledged number is printed, one per line.
import { writeSync } from "node:fs";
import { openSqliteStore } from "../index.ts";

const [file = ""] = process.argv.slice(2);
const store = await openSqliteStore({ file });
let next = store.head + 1;
writeSync(1, `open ${store.head}\n`);
async function commitOn(): Promise<never> {
  while (true) {
    const mine = next++;
    const events = await store.commit(
      [{ type: "test.committed", actor: "test", sandboxId: `sb_${mine % 3}`, data: { mine } }],
      [{ put: "value", key: `k${mine % 10}`, value: { mine } }],
    );
    writeSync(1, `${events[0]!.seq} ${mine}\n`);
  }
}
await Promise.all(Array.from({ length: 4 }, commitOn));
