/** Where the daemon of this user listens, as in ARCHITECTURE.md, "Where things live". */
export function defaultSocketPath(): string {
  const { env } = process;
  return `${dataDirectory(env)}/run/daemon.sock`;
}

function dataDirectory(env: NodeJS.ProcessEnv): string {
  if (env.CAISSON_HOME) return env.CAISSON_HOME;
  if (process.getuid?.() === 0) return "/var/lib/caisson";
  return `${env.XDG_DATA_HOME || `${env.HOME || process.getBuiltinModule("node:os").homedir()}/.local/share`}/caisson`;
}
