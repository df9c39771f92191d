import { CaissonError } from "@caisson/contract/errors";
import type { Probe } from "../driver.ts";
import { findProgram } from "../find-program.ts";

interface Obstacle {
  /** Found in what the system or the engine said. */
  sign: RegExp;
  reason: string;
  fix?: string;
}

const sudo = process.getuid?.() === 0 ? "" : "sudo ";

/** The usual ones, each with its way out. The first that shows is the one. */
const obstacles: Obstacle[] = [
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

/** Why the engine at this socket cannot be used; undefined: why none was found. */
export async function explainEngine(error: unknown, socket: string | undefined): Promise<Probe> {
  const words = wordsOf(error);
  if (socket === undefined) return { usable: false, reason: CaissonError.from(error).message };
  if (/ENOENT|ECONNREFUSED/.test(words)) return explainAbsence(socket);
  const obstacle = obstacles.find(({ sign }) => sign.test(words));
  if (obstacle === undefined) return { usable: false, reason: words.slice(0, 300) };
  const { reason, fix } = obstacle;
  return { usable: false, reason, ...(fix === undefined ? {} : { fix }) };
}

/** Installed and stopped, or never there. */
async function explainAbsence(socket: string): Promise<Probe> {
  const isPodman = socket.includes("podman");
  const own = isPodman && process.getuid?.() !== 0;
  if (await findProgram(isPodman ? "podman" : "dockerd")) {
    const start = own
      ? "systemctl --user start podman.socket"
      : `${sudo}systemctl start ${isPodman ? "podman.socket" : "docker"}`;
    return { usable: false, reason: `the engine is not running: nothing listens at ${socket}`, fix: start };
  }
  return {
    usable: false,
    reason: `no Docker engine is there: nothing listens at ${socket}`,
    fix: `${sudo}apt-get install -y docker.io`,
  };
}

function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = (error as NodeJS.ErrnoException).code ?? "";
  return `${error.message} ${code}${error.cause === undefined ? "" : ` ${wordsOf(error.cause)}`}`.trim();
}
