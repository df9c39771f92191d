import type { Probe } from "../driver.ts";

interface Obstacle {
  /** Found in what runsc said. */
  sign: RegExp;
  reason: string;
  fix?: string;
}

/** The usual ones, each with its way out. The first that shows is the one. */
const obstacles: Obstacle[] = [
  {
    sign: /flag provided but not defined: -(host-uds|overlay2)/,
    reason: "this runsc is too old",
    fix: "install gVisor 20221219 or newer: https://gvisor.dev/docs/user_guide/install/",
  },
  {
    sign: /ptrace.*operation not permitted|PTRACE_TRACEME/i,
    reason: "this machine forbids tracing, which gVisor's platform ptrace is made of",
    fix: "sudo sysctl -w kernel.yama.ptrace_scope=1; in a container: --cap-add SYS_PTRACE",
  },
  {
    sign: /fork\/exec \/proc\/self\/exe: (operation not permitted|invalid argument|no space left)/,
    reason: "this machine does not let runsc make user namespaces",
    fix: "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 user.max_user_namespaces=15000",
  },
];

/** runsc itself failed. */
export function explainTrial(words: string): Probe {
  const obstacle = obstacles.find(({ sign }) => sign.test(words));
  if (obstacle === undefined) {
    const line = words.split("\n", 1)[0]?.slice(0, 200) ?? "";
    return { usable: false, reason: `runsc failed: ${line}` };
  }
  const { reason, fix } = obstacle;
  return { usable: false, reason, ...(fix === undefined ? {} : { fix }) };
}
