// A daemon with secrets, a name server and real TLS hosts: one that gets a secret, one that gets none, and one that speaks HTTP/2 alone.
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Client, connect } from "@caisson/client";
import { startNameServer } from "../../../packages/sandbox/src/egress/testing/name-server.ts";
import { startHost } from "../../../packages/sandbox/src/secrets/testing/host.ts";
import { startHttp2Host } from "../../../packages/sandbox/src/secrets/testing/http2-host.ts";
import { type Account, startDaemon, temporaryDirectory } from "../../support/daemon.ts";
import { Launcher } from "../../support/launcher.ts";

/** Values that must never be seen inside, nor in anything that the daemon tells. */
export const canaries = {
  env: "ghp_CanaryFromTheEnvironment0123456789",
  file: "canary-from-a-file-0123456789",
  command: "canary-from-a-command-0123456789",
  stored: "canary-that-was-stored-0123456789",
};

export const names = { own: "api.example.test", other: "other.example.test", grpc: "grpc.example.test" };

export async function openWorld(account: Account) {
  const dns = await startNameServer();
  const own = await startHost(names.own);
  const other = await startHost(names.other);
  const grpc = await startHttp2Host(names.grpc);
  for (const name of Object.values(names)) dns.set(name, ["127.0.0.1"]);
  const home = temporaryDirectory(account);
  const write = (name: string, text: string) => {
    const path = join(home, name);
    writeFileSync(path, text, { mode: 0o600 });
    execFileSync("chown", [`${account.uid}:${account.gid}`, path]);
    return path;
  };
  const host = `${names.own}:${own.port}`;
  const hosts = JSON.stringify([host, `${names.grpc}:${grpc.port}`]);
  write("extra.pem", [own, other, grpc].map(({ certificate }) => certificate).join("\n"));
  write("secret.txt", `${canaries.file}\n`);
  write(
    "config.yaml",
    `network: {dns_servers: ["${dns.address}"], extra_ca: "${join(home, "extra.pem")}"}
secrets:
  API_TOKEN: {env: CANARY, hosts: ${hosts}}
  FILE_TOKEN: {file: "${join(home, "secret.txt")}", hosts: ["${host}"], inject: [header, body]}
  COMMAND_TOKEN: {command: [printf, "${canaries.command}"], hosts: ["${host}"]}
`,
  );
  mkdirSync(join(home, "project"));
  execFileSync("chown", [`${account.uid}:${account.gid}`, join(home, "project")]);
  const daemon = await startDaemon({ account, home, env: { CANARY: canaries.env } });
  const client: Client = await connect({ socket: daemon.socket });
  const allow = [own, other, grpc].flatMap(({ port }) => [
    ...Object.values(names).map((name) => `${name}:${port}`),
    `127.0.0.1:${port}`,
  ]);
  return {
    daemon,
    client,
    own,
    other,
    grpc,
    url: `https://${names.own}:${own.port}`,
    otherUrl: `https://${names.other}:${other.port}`,
    network: { mode: "allow" as const, allow },
    caisson: new Launcher(daemon, join(home, "project")),
    async [Symbol.asyncDispose]() {
      await client.close();
      await daemon[Symbol.asyncDispose]();
      execFileSync("rm", ["-rf", home]);
      own[Symbol.dispose]();
      other[Symbol.dispose]();
      grpc[Symbol.dispose]();
      dns.close();
    },
  };
}

export type World = Awaited<ReturnType<typeof openWorld>>;
