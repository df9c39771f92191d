// `npm run conformance -- --url URL [--key KEY]` or `-- --socket PATH`: holds a server to the contract.
// `--only TEXT` runs the cases whose id contains it, `--list` names them, `--json` prints one document.
import { parseArgs } from "node:util";
import { exec } from "./server/exec.ts";
import { faces } from "./server/faces.ts";
import { files } from "./server/files.ts";
import { idempotency } from "./server/idempotency.ts";
import { input } from "./server/input.ts";
import { paths } from "./server/paths.ts";
import { sandboxes } from "./server/sandboxes.ts";
import { Server } from "./server/server.ts";
import { streams } from "./server/streams.ts";
import { type Case, Unmet } from "./server/suite.ts";
import { system } from "./server/system.ts";

/** A guard against hanging; nothing here needs as long. */
const caseTimeoutMs = 120_000;

const cases = [system, sandboxes, exec, streams, idempotency, files, paths, input, faces].flat();

interface Outcome {
  id: string;
  must: string;
  outcome: "passed" | "failed" | "skipped";
  why?: string;
}

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        url: { type: "string" },
        socket: { type: "string" },
        key: { type: "string", default: process.env.CAISSON_KEY ?? "" },
        only: { type: "string", default: "" },
        json: { type: "boolean", default: false },
        list: { type: "boolean", default: false },
      },
    });
    return values;
  } catch (thrown) {
    return usage((thrown as Error).message);
  }
}

function usage(problem: string): never {
  console.error(
    `${problem}\nusage: npm run conformance -- (--url URL [--key KEY] | --socket PATH) [--only TEXT] [--list] [--json]`,
  );
  process.exit(2);
}

async function tryCase(one: Case, server: Server): Promise<Outcome> {
  const { id, must, on } = one;
  const where = server.address.socket ? "socket" : "tcp";
  if (on && on !== where)
    return { id, must, outcome: "skipped", why: `only on ${on === "tcp" ? "TCP" : "a socket"}` };
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Unmet("it did not end")), caseTimeoutMs);
  try {
    await Promise.race([one.run(server), late]);
    return { id, must, outcome: "passed" };
  } catch (thrown) {
    const why = thrown instanceof Unmet ? thrown.message : String((thrown as Error)?.stack ?? thrown);
    return { id, must, outcome: "failed", why };
  } finally {
    clearTimeout(timer);
  }
}

const options = readOptions();
if (options.list) {
  for (const { id, must } of cases) console.log(`${id.padEnd(26)}${must}`);
  process.exit(0);
}
if ((options.url === undefined) === (options.socket === undefined)) usage("name one server");
const server = new Server({ url: options.url, socket: options.socket, key: options.key || undefined });
const outcomes: Outcome[] = [];
for (const one of cases.filter(({ id }) => id.includes(options.only))) {
  const outcome = await tryCase(one, server);
  outcomes.push(outcome);
  if (options.json) continue;
  console.log(`${outcome.outcome.padEnd(8)}${one.id.padEnd(26)}${outcome.why ?? one.must}`);
}
await server.close();
const count = (kind: string) => outcomes.filter(({ outcome }) => outcome === kind).length;
if (options.json) console.log(JSON.stringify({ outcomes }, null, 2));
else console.log(`${count("passed")} passed, ${count("failed")} failed, ${count("skipped")} skipped`);
process.exit(count("failed") > 0 || outcomes.length === 0 ? 1 : 0);
