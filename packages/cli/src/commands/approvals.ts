import type { Approval, DecisionScope } from "@caisson/client";
import { type Call, defineCommand } from "../command/command.ts";
import type { OptionTable, Values } from "../command/option.ts";
import { UsageError } from "../command/usage-error.ts";
import { formatAge } from "../text/units.ts";
import { Asker } from "../work/asking.ts";
import { untilLeft } from "../work/until-left.ts";

const listOptions = {
  sandbox: { kind: "text", value: "BOX", summary: "Only of this sandbox" },
  all: { kind: "flag", short: "a", summary: "Also those that were answered within the last day" },
} as const satisfies OptionTable;

async function printList({ options, client, print }: Call<typeof listOptions>): Promise<number> {
  const query = { sandboxId: options.sandbox, all: options.all };
  const approvals = await Array.fromAsync(client.approvals.list(query));
  if (options.json) await print.json(approvals);
  else {
    const rows = approvals.map((approval) => [
      approval.id,
      approval.kind,
      print.safe(approval.subject),
      print.safe(approval.agent || "-"),
      approval.sandboxId || print.safe(approval.requestedBy),
      formatAge(approval.requestedAt),
      stateOf(approval),
      print.safe(approval.reason),
    ]);
    await print.table(["ID", "KIND", "WHAT", "AGENT", "WHO", "AGE", "STATE", "WHY"], rows);
  }
  return 0;
}

function stateOf({ state, decidedBy, decisionScope }: Approval): string {
  if (state === "pending" || state === "expired") return state;
  return `${state} ${decisionScope ?? ""} by ${decidedBy}`;
}

const list = defineCommand({
  name: "ls",
  summary: "List requests that wait for an answer",
  options: listOptions,
  run: printList,
});

const reachOptions = {
  once: { kind: "flag", summary: "This request alone. The default" },
  sandbox: { kind: "flag", summary: "The same request of this sandbox as long as it lives" },
  always: { kind: "flag", summary: "The same request of every sandbox; kept beside your configuration" },
} as const satisfies OptionTable;

function reachOf(options: Values<typeof reachOptions>): DecisionScope {
  const chosen = (["once", "sandbox", "always"] as const).filter((name) => options[name]);
  if (chosen.length > 1) throw new UsageError("only one of --once, --sandbox and --always");
  return chosen[0] ?? "once";
}

function answering(name: "allow" | "deny", summary: string) {
  return defineCommand({
    name,
    summary,
    positionals: [{ name: "ID", summary: "As `caisson approvals` lists it", rest: true }],
    options: reachOptions,
    async run({ options, positionals, client, print }) {
      const scope = reachOf(options);
      if (positionals.length === 0) throw new UsageError("ID is missing");
      for (const id of positionals) {
        const approval = await client.approvals[name](id, { scope });
        if (options.json) await print.json(approval);
        else
          await print.line(`${approval.state} (${scope}): ${approval.kind} ${print.safe(approval.subject)}`);
      }
      return 0;
    },
  });
}

const watch = defineCommand({
  name: "watch",
  summary: "Show requests as they come, and ask for the answers on a terminal",
  options: { sandbox: listOptions.sandbox },
  async run({ options, io, client, print }) {
    return untilLeft(io, async (signal) => {
      const requests = client.approvals.watch({ sandboxId: options.sandbox, signal });
      if (options.json) {
        for await (const approval of requests) await print.jsonLine(approval);
      } else {
        const manner = io.stdin.isTerminal && io.stderr.isTerminal ? "ask" : "tell";
        await new Asker(io, client, manner).each(requests, signal);
      }
    });
  },
});

export const command = defineCommand({
  name: "approvals",
  summary: "See and answer what sandboxes ask for",
  details:
    "A destination under `ask`, and whatever else the configuration lets people answer, waits here for a minute; no\n" +
    "answer is a refusal. The terminal that started a command is asked too, unless it is the command's own.",
  options: listOptions,
  commands: [
    list,
    answering("allow", "Let what asked go on"),
    answering("deny", "Refuse it; nobody is asked again for a few seconds"),
    watch,
  ],
  examples: [
    { line: "caisson approvals", what: "What waits for an answer" },
    { line: "caisson approvals ls --all --json", what: "The last day, for programs" },
  ],
  run: printList,
});
