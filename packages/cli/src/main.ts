// The command line in a process of its own, for a daemon elsewhere: CAISSON_URL says where.
import { connect } from "@caisson/client";
import { main } from "./invoke.ts";
import type { Host } from "./io/host.ts";
import { nodeIo } from "./io/node.ts";

const url = process.env.CAISSON_URL;
const host: Host = {
  sharesFiles: url === undefined || isThisMachine(url),
  openapi: async () => {
    if (!url) throw new Error("CAISSON_URL is not set");
    const response = await fetch(new URL("/openapi.json", url), { redirect: "error" });
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    return response.text();
  },
};
const io = nodeIo();
const client = await connect({ url, traceparent: () => process.env.TRACEPARENT });
const code = await main(process.argv.slice(2), io, client, host);
await client.close();
process.exitCode = code;
// Standard input may still be open; nobody waits for it any more.
process.stdin.destroy();

function isThisMachine(address: string): boolean {
  return URL.canParse(address) && ["127.0.0.1", "localhost", "[::1]"].includes(new URL(address).hostname);
}
