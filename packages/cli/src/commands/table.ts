import type { Command } from "../command/command.ts";

type Loader = () => Promise<{ command: Command }>;

/** All commands, in the order of the help. Each is loaded when it is first used, and stays. */
const groups: readonly { title: string; commands: Readonly<Record<string, Loader>> }[] = [
  {
    title: "Run commands",
    commands: {
      run: () => import("./run.ts"),
      exec: () => import("./exec.ts"),
      attach: () => import("./attach.ts"),
      logs: () => import("./logs.ts"),
    },
  },
  {
    title: "Sandboxes",
    commands: {
      create: () => import("./create.ts"),
      ls: () => import("./ls.ts"),
      ps: () => import("./ps.ts"),
      stats: () => import("./stats.ts"),
      extend: () => import("./extend.ts"),
      rm: () => import("./rm.ts"),
      session: () => import("./session.ts"),
      port: () => import("./port.ts"),
    },
  },
  {
    title: "Files",
    commands: {
      cp: () => import("./cp.ts"),
      files: () => import("./files.ts"),
      git: () => import("./git.ts"),
    },
  },
  {
    title: "Changes to the project",
    commands: {
      diff: () => import("./diff.ts"),
      apply: () => import("./apply.ts"),
      export: () => import("./export.ts"),
      rebase: () => import("./rebase.ts"),
      discard: () => import("./discard.ts"),
      undo: () => import("./undo.ts"),
    },
  },
  {
    title: "Sandboxes that are kept",
    commands: {
      pause: () => import("./pause.ts"),
      resume: () => import("./resume.ts"),
      snapshot: () => import("./snapshot.ts"),
      restore: () => import("./restore.ts"),
      fork: () => import("./fork.ts"),
      template: () => import("./template.ts"),
    },
  },
  {
    title: "Images",
    commands: { image: () => import("./image.ts") },
  },
  {
    title: "What sandboxes ask for",
    commands: {
      approvals: () => import("./approvals.ts"),
      secret: () => import("./secret.ts"),
    },
  },
  {
    title: "What happened",
    commands: {
      net: () => import("./net.ts"),
      events: () => import("./events.ts"),
      audit: () => import("./audit.ts"),
      df: () => import("./df.ts"),
      prune: () => import("./prune.ts"),
    },
  },
  {
    title: "This machine",
    commands: {
      doctor: () => import("./doctor.ts"),
      profile: () => import("./profile.ts"),
      config: () => import("./config.ts"),
      keys: () => import("./keys.ts"),
      daemon: () => import("./daemon.ts"),
      openapi: () => import("./openapi.ts"),
      version: () => import("./version.ts"),
      completion: () => import("./completion.ts"),
      help: () => import("./help.ts"),
    },
  },
];

const loaders = new Map(groups.flatMap(({ commands }) => Object.entries(commands)));
const loaded = new Map<string, Command>();

export const commandNames: readonly string[] = [...loaders.keys()];

/** A command by name; without a wait once it has been used. */
export function findCommand(name: string): Command | undefined | Promise<Command> {
  return loaded.get(name) ?? (loaders.has(name) ? load(name) : undefined);
}

async function load(name: string): Promise<Command> {
  const { command } = await loaders.get(name)!();
  loaded.set(name, command);
  return command;
}

/** Everything, for help, completions and the reference. */
export function loadGroups(): Promise<{ title: string; commands: Command[] }[]> {
  return Promise.all(
    groups.map(async ({ title, commands }) => ({
      title,
      commands: await Promise.all(Object.keys(commands).map(load)),
    })),
  );
}

/** Loads what is called most, so that even a first call finds it there. */
export async function warm(): Promise<void> {
  await Promise.all(["run", "exec", "ls", "ps"].map(load));
}
