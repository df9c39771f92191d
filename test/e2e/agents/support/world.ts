// A daemon that is set up for agents as docs/agents.md says, a project, and a scripted model for each agent.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { startNameServer } from "../../../../packages/sandbox/src/egress/testing/name-server.ts";
import { type Account, startDaemon, temporaryDirectory } from "../../../support/daemon.ts";
import { Launcher } from "../../../support/launcher.ts";
import { makeCertificate } from "../../../support/network/certificate.ts";
import { removeTree } from "../../../support/remove-tree.ts";
import { type Agent, agents } from "./agents.ts";
import { agentPrograms } from "./clis.ts";
import { type Model, startModel } from "./model.ts";

const name = "model.example.test";

/** What the providers get and nobody else sees. */
export const realKey = (agent: Agent) => `real-key-of-${agent.name}-0123456789`;

export type World = Awaited<ReturnType<typeof openWorld>>;

export async function openWorld(account: Account, commands: readonly string[], last: string) {
  const names = await startNameServer();
  names.set(name, ["127.0.0.1"]);
  const certificate = makeCertificate([name]);
  const models = new Map<Agent, Model>();
  for (const agent of agents) models.set(agent, await startModel(certificate, commands, last));
  const urlOf = (agent: Agent) => `https://${name}:${models.get(agent)!.port}`;
  const home = temporaryDirectory(account);
  writeFileSync(join(home, "authority.pem"), certificate.authority);
  writeFileSync(join(home, "config.yaml"), JSON.stringify(configOf(home, names.address, models, urlOf)));
  const env = Object.fromEntries(agents.map((agent) => [`REAL_${agent.key}`, realKey(agent)]));
  execFileSync("chown", ["-R", `${account.uid}:${account.gid}`, home]);
  const daemon = await startDaemon({
    account,
    home,
    env: { ...env, PATH: `${agentPrograms()}:${process.env.PATH}` },
  });
  return {
    daemon,
    urlOf,
    model: (agent: Agent) => models.get(agent)!,
    /** The launcher in a repository of its own with one commit. */
    project(): Launcher {
      const dir = temporaryDirectory(account);
      const git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", "-C", dir];
      const as = { uid: account.uid, gid: account.gid, env: { PATH: process.env.PATH!, HOME: home } };
      for (const words of [
        ["init", "-q"],
        ["commit", "-q", "--allow-empty", "-m", "by a person"],
      ])
        execFileSync(git[0]!, [...git.slice(1), ...words], as);
      return new Launcher(daemon, dir);
    },
    async [Symbol.asyncDispose]() {
      await daemon[Symbol.asyncDispose]();
      for (const model of models.values()) model[Symbol.dispose]();
      names.close();
      removeTree(home);
    },
  };
}

function configOf(
  home: string,
  dns: string,
  models: Map<Agent, Model>,
  urlOf: (agent: Agent) => string,
): object {
  const destinations = (agent: Agent) => [
    `${name}:${models.get(agent)!.port}`,
    `127.0.0.1:${models.get(agent)!.port}`,
  ];
  return {
    network: { dns_servers: [dns], extra_ca: join(home, "authority.pem") },
    sandbox: { git_name: "An agent", git_email: "agent@example.org" },
    secrets: Object.fromEntries(
      agents.map((agent) => [
        agent.key,
        { env: `REAL_${agent.key}`, hosts: destinations(agent).slice(0, 1) },
      ]),
    ),
    profiles: Object.fromEntries(
      agents.map((agent) => [
        agent.name,
        {
          network: { mode: "allow", allow: destinations(agent) },
          secrets: [agent.key],
          caches: [agent.name],
          env: agent.env(urlOf(agent)),
        },
      ]),
    ),
  };
}
