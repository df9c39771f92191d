/** How runsc is called: one sandbox per state directory, nothing of the host but what its bundle shows. */
export interface RunscCall {
  runsc: string;
  /** Where runsc keeps what it knows of the sandbox. */
  state: string;
  bundle: string;
  platform: string;
  /** Run without root. */
  rootless: boolean;
}

/** The command that makes an unsealed sandbox and ends with it. */
export function runscArgv(call: RunscCall, sandboxId: string): string[] {
  return [...runscBase(call), "run", "--bundle", call.bundle, sandboxId];
}

function runscBase({ runsc, state, platform, rootless }: RunscCall): string[] {
  return [
    runsc,
    "--root",
    state,
    `--platform=${platform}`,
    "--network=none",
    // Nobody but root writes to what shows of the host, and nothing inside can: what was read of it may be remembered.
    "--file-access-mounts=exclusive",
    // Limits are the daemon's: it puts the whole tree into a group of its own.
    "--ignore-cgroups",
    // What is written to the root stays in the sandbox's memory; mounts that are read-only stay so.
    "--overlay2=root:memory",
    // The guest's door is a socket in a directory of the host's, covered before anything else runs.
    "--host-uds=create",
    // The guest redirects connections by iptables, which wants a raw socket, and gives the capability up with all others.
    "--net-raw=true",
    "--watchdog-action=panic",
    ...(rootless ? ["--rootless"] : []),
  ];
}
