import type { Answer, AskRequest } from "../../egress/index.ts";
import { ruleFor } from "../../egress/rules.ts";
import type { Box } from "../box.ts";
import type { EngineContext } from "../context.ts";

/** Asks whether a sandbox may reach something that no rule allows or denies. */
export function askForConnection(context: EngineContext, box: Box, request: AskRequest): Promise<Answer> {
  const { name, port, reason, signal } = request;
  return context.approvals.ask({
    kind: "network",
    subject: ruleFor(name, port),
    sandboxId: box.id,
    agent: box.record.agent,
    reason,
    by: `sandbox:${box.id}`,
    signal,
  });
}
