// docs/tiers.md says by what each mechanism holds in each tier. It is written from what sandboxes really report:
// `CAISSON_WRITE_TIERS=1 node --test test/drivers/tiers.test.ts` as root.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "@caisson/client";
import { root, startDaemon } from "../support/daemon.ts";
import { canStartDockerd } from "../support/dockerd.ts";
import { sharedEngine } from "../support/engine.ts";

const page = join(root, "docs/tiers.md");
const [begin, end] = ["<!-- written by test/drivers/tiers.test.ts -->", "<!-- end -->"];
const columns = ["bubblewrap", "docker", "runsc", "qemu"];

/** Each mechanism with what each driver says of it. */
async function table(): Promise<{ text: string; tried: string[] }> {
  await using engine = await sharedEngine();
  await using daemon = await startDaemon({ env: engine.env });
  await using client = await connect({ socket: daemon.socket });
  const { drivers } = await client.system.capabilities();
  const tried = columns.filter((name) => drivers.some((driver) => driver.name === name && driver.usable));
  const cells = new Map<string, Map<string, string>>();
  for (const driver of tried) {
    await using box = await client.create({ driver });
    for (const { name, state, by } of box.info.enforced!.mechanisms) {
      const row = cells.get(name) ?? new Map<string, string>();
      cells.set(name, row.set(driver, state === "enforced" ? by : `*${state}*`));
    }
  }
  const rows = [...cells].sort(([one], [other]) => (one < other ? -1 : 1));
  const lines = rows.map(
    ([name, row]) => `| \`${name}\` | ${tried.map((driver) => row.get(driver) ?? "").join(" | ")} |`,
  );
  const head = `| mechanism | ${tried.map((driver) => `\`${driver}\``).join(" | ")} |\n|---|${"---|".repeat(tried.length)}`;
  return { text: [head, ...lines].join("\n"), tried };
}

const skip = !canStartDockerd() && "the page says what holds under root's daemon, with Docker's engine";

test("docs/tiers.md says what sandboxes of each tier report", { skip, timeout: 280_000 }, async () => {
  const { text, tried } = await table();
  const before = readFileSync(page, "utf8");
  const [head, rest] = before.split(begin) as [string, string];
  const [written, tail] = rest.split(end) as [string, string];
  if (process.env.CAISSON_WRITE_TIERS) writeFileSync(page, `${head}${begin}\n\n${text}\n\n${end}${tail}`);
  else assert.equal(plain(text), plain(written), `write it anew; tried: ${tried.join(", ")}`);
});

/** Versions of a kernel's parts differ from machine to machine. */
function plain(text: string): string {
  return text.trim().replace(/\d+/g, "N");
}
