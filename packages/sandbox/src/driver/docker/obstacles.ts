import type { Probe } from "../driver.ts";

interface Obstacle {
  /** Found in what the system or the engine said. */
  sign: RegExp;
  reason: string;
  fix?: string;
}

const sudo = process.getuid?.() === 0 ? "" : "sudo ";

/** The usual ones, each with its way out. The first that shows is the one. */
const obstacles: Obstacle[] = [
  { sign: /ENOENT/, reason: "no Docker engine is there", fix: `${sudo}apt-get install -y docker.io` },
  { sign: /ECONNREFUSED/, reason: "the Docker engine is not running", fix: `${sudo}systemctl start docker` },
  {
    sign: /EACCES|EPERM/,
    reason: "this user may not speak to the Docker engine (whoever may is as good as root)",
    fix: `${sudo}usermod -aG docker $USER   # then log in again`,
  },
  {
    sign: /ended with code 70/,
    reason: "the engine's containers may not make user namespaces",
    fix: "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 user.max_user_namespaces=15000",
  },
];

export function explainEngine(error: unknown): Probe {
  const words = wordsOf(error);
  const obstacle = obstacles.find(({ sign }) => sign.test(words));
  if (obstacle === undefined) return { usable: false, reason: words.slice(0, 300) };
  const { reason, fix } = obstacle;
  return { usable: false, reason, ...(fix === undefined ? {} : { fix }) };
}

function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = (error as NodeJS.ErrnoException).code ?? "";
  return `${error.message} ${code}${error.cause === undefined ? "" : ` ${wordsOf(error.cause)}`}`.trim();
}
