import type { Probe } from "../driver.ts";

interface Obstacle {
  /** Found in what the kernel, the keeper or bubblewrap said. */
  sign: RegExp;
  reason: string;
  fix?: string;
}

/** The usual ones, each with its way out. The first that shows is the one. */
const obstacles: Obstacle[] = [
  {
    sign: /apparmor_restrict_unprivileged_userns/,
    reason: "AppArmor forbids user namespaces to programs without a profile (Ubuntu's default)",
    fix: "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
  },
  {
    sign: /max_user_namespaces is 0|limit of user namespaces/,
    reason: "user namespaces are switched off (user.max_user_namespaces)",
    fix: "sudo sysctl -w user.max_user_namespaces=15000",
  },
  {
    sign: /unprivileged_userns_clone/,
    reason: "user namespaces are switched off for ordinary users (kernel.unprivileged_userns_clone)",
    fix: "sudo sysctl -w kernel.unprivileged_userns_clone=1",
  },
  {
    sign: /changing to an unused uid/,
    reason:
      "root here lacks what giving each sandbox a uid of its own takes (CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID)",
    fix: "run the daemon as an ordinary user, or start the outer container with --cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined",
  },
  {
    sign: /no user namespaces/,
    reason: "this kernel was built without user namespaces",
    fix: "boot a kernel with CONFIG_USER_NS=y",
  },
  {
    sign: /seccomp filter/,
    reason: "this machine is a container whose seccomp filter forbids user namespaces",
    fix: "start the outer container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined",
  },
  {
    sign: /mount proc|mounting proc/i,
    reason: "this machine is a container that hides parts of /proc, so no sandbox can have its own",
    fix: "start the outer container with --security-opt systempaths=unconfined",
  },
  {
    sign: /unknown option|Unrecognized option/i,
    reason: "this bubblewrap is too old",
    fix: "sudo apt-get install -y bubblewrap   # 0.8.0 or newer",
  },
  {
    sign: /setting up uid map|No permissions to create.*namespace|Creating new namespace failed|Operation not permitted/i,
    reason: "this machine does not let bubblewrap make namespaces",
    fix: "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0; in a container: --security-opt seccomp=unconfined --security-opt apparmor=unconfined",
  },
];

/** The keeper could not make a user namespace. */
export function explainNamespaces(words: string): Probe {
  return explain(words, `user namespaces do not work: ${words}`);
}

/** Bubblewrap itself failed. */
export function explainTrial(words: string): Probe {
  const line = words.split("\n", 1)[0]?.slice(0, 200) ?? "";
  return explain(words, `bubblewrap failed: ${line}`);
}

function explain(words: string, unknown: string): Probe {
  const obstacle = obstacles.find(({ sign }) => sign.test(words));
  if (obstacle === undefined) return { usable: false, reason: unknown };
  const { reason, fix } = obstacle;
  return { usable: false, reason, ...(fix === undefined ? {} : { fix }) };
}
