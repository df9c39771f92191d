import type { Sandbox } from "@caisson/client";
import type { Printer } from "../text/printer.ts";
import type { Style } from "../text/style.ts";
import { formatAge } from "../text/units.ts";

const colours: Partial<Record<Sandbox["state"], Style>> = { ready: "green", queued: "yellow", ended: "dim" };

/** Sandboxes for people. */
export async function printSandboxes(print: Printer, sandboxes: readonly Sandbox[]): Promise<void> {
  const rows = sandboxes.map((sandbox) => {
    const style = colours[sandbox.state];
    const state = sandbox.endReason ? `${sandbox.state} (${print.safe(sandbox.endReason)})` : sandbox.state;
    return [
      sandbox.id,
      print.safe(sandbox.session) || "-",
      style ? print.paint(style, state) : state,
      `${sandbox.tier}/${sandbox.driver}`,
      sandbox.profile,
      formatAge(sandbox.createdAt),
      print.safe(sandbox.workspace?.dir || "-"),
    ];
  });
  await print.table(["BOX", "SESSION", "STATE", "TIER/DRIVER", "PROFILE", "AGE", "WORKSPACE"], rows);
}
