// A caller without the scope `all` sees what it has made itself. What others have made is not there for it: not found, not listed.
import type { DescMethod } from "@bufbuild/protobuf";
import {
  type Approval,
  CaissonError,
  type CallContext,
  type Event,
  type NetworkDecision,
  type ServedService,
  type Session,
  type Snapshot,
  seesAll,
} from "@caisson/contract";
import type { Engine } from "@caisson/sandbox";

type Seen = Pick<Engine, "owners" | "approvals">;
// biome-ignore lint/suspicious/noExplicitAny: requests and answers of every method pass through here; each rule names its own.
type Message = any;
type Impl = (input: unknown, call: CallContext) => unknown;
/** Throws where a request names something of another's. */
type Check = (request: Message, call: CallContext, seen: Seen) => void;
/** What of an answer the caller may see; undefined: nothing. */
type Filter = (answer: Message, call: CallContext, seen: Seen) => unknown;

/** Services that show a caller only what it may see. */
export function onlyOwn(services: readonly ServedService[], seen: Seen): ServedService[] {
  return services.map(({ service, impl }) => ({
    service,
    impl: Object.fromEntries(
      service.methods.map((method) => {
        const inner = (impl as unknown as Record<string, Impl>)[method.localName]!.bind(impl);
        return [method.localName, guarded(method, inner, seen)];
      }),
    ) as ServedService["impl"],
  }));
}

/** Is it settled what a caller that sees only its own gets from a method? */
export function isSettled(method: DescMethod): boolean {
  return shared.has(method.name) || checkOf(method) !== undefined || method.name in filters;
}

function guarded(method: DescMethod, inner: Impl, seen: Seen): Impl {
  const check = checkOf(method);
  const filter = filters[method.name];
  if (!check && !filter) return inner;
  const takesStream = method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming";
  const answersStream = method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming";
  const admitted = (input: unknown, call: CallContext) => {
    if (takesStream) return checkEach(input as AsyncIterable<Message>, (each) => check?.(each, call, seen));
    check?.(input, call, seen);
    return input;
  };
  if (answersStream) {
    return (input, call) => {
      if (seesAll(call)) return inner(input, call);
      return (async function* () {
        const answers = inner(admitted(input, call), call) as AsyncIterable<Message>;
        for await (const answer of answers) {
          const shown = filter ? filter(answer, call, seen) : answer;
          if (shown !== undefined) yield shown;
        }
      })();
    };
  }
  const answered = async (input: unknown, call: CallContext) => {
    const answer = await inner(admitted(input, call), call);
    return filter ? filter(answer, call, seen) : answer;
  };
  return (input, call) => (seesAll(call) ? inner(input, call) : answered(input, call));
}

async function* checkEach(requests: AsyncIterable<Message>, check: (request: Message) => void) {
  for await (const request of requests) {
    check(request);
    yield request;
  }
}

function checkOf(method: DescMethod): Check | undefined {
  if (checks[method.name]) return checks[method.name];
  return method.input.fields.some(({ name }) => name === "sandbox_id") ? ownSandbox : undefined;
}

/** Only the first message of a stream need name one. */
const ownSandbox: Check = ({ sandboxId }, { actor }, { owners }) => {
  if (sandboxId === "" || owners.ofSandbox(sandboxId) === actor) return;
  if (sandboxId.startsWith("session:"))
    throw new CaissonError("SESSION_NOT_FOUND", `there is no living session ${sandboxId.slice(8)}`);
  throw new CaissonError("SANDBOX_NOT_FOUND", "there is no such sandbox");
};

const ownSnapshot: Check = ({ snapshot }, { actor }, { owners }) => {
  if (snapshot === "" || owners.ofSnapshot(snapshot) === actor) return;
  throw new CaissonError("SNAPSHOT_NOT_FOUND", "there is no such snapshot or template");
};

const ownApproval: Check = ({ approvalId }, call, seen) => {
  if (approvalId === "" || showsApproval(seen.approvals.get(approvalId), call, seen)) return;
  throw new CaissonError("APPROVAL_NOT_FOUND", "there is no such approval");
};

/** What a sandbox is begun with; a session that is another's is the engine's to refuse. */
const ownBeginning: Check = ({ spec }, call, seen) => {
  if (spec) ownSnapshot(spec, call, seen);
};

const checks: Readonly<Record<string, Check>> = {
  CreateSandbox: ownBeginning,
  OpenSession: ownBeginning,
  Run: ownBeginning,
  RunStream: ownBeginning,
  CloseSession: ({ name }, call, seen) => ownSandbox({ sandboxId: `session:${name}` }, call, seen),
  GetSnapshot: ownSnapshot,
  DeleteSnapshot: ownSnapshot,
  ExportSnapshot: ownSnapshot,
  GetApproval: ownApproval,
  DecideApproval: ownApproval,
  ListApprovals: (request, call, seen) => {
    if (!call.mayApprove) ownSandbox(request, call, seen);
  },
};

/** Whoever answers requests sees everybody's. */
function showsApproval(approval: Approval, { actor, mayApprove }: CallContext, { owners }: Seen): boolean {
  const { sandboxId, requestedBy } = approval;
  if (mayApprove) return true;
  return sandboxId === "" ? requestedBy === actor : owners.ofSandbox(sandboxId) === actor;
}

const filters: Readonly<Record<string, Filter>> = {
  // The engine is asked for the caller's own, so that pages are full.
  ListSandboxes: (answer) => answer,
  ListSessions: (answer: { sessions: Session[] }, { actor }, { owners }) => ({
    ...answer,
    sessions: answer.sessions.filter(({ sandbox }) => owners.ofSandbox(sandbox?.id ?? "") === actor),
  }),
  ListSnapshots: (answer: { snapshots: Snapshot[] }, { actor }, { owners }) => ({
    ...answer,
    snapshots: answer.snapshots.filter(({ id }) => owners.ofSnapshot(id) === actor),
  }),
  ListApprovals: (answer: { approvals: Approval[] }, call, seen) => ({
    ...answer,
    approvals: answer.approvals.filter((approval) => showsApproval(approval, call, seen)),
  }),
  ListDecisions: (answer: { decisions: NetworkDecision[] }, { actor }, { owners }) => ({
    ...answer,
    decisions: answer.decisions.filter(({ sandboxId }) => owners.ofSandbox(sandboxId) === actor),
  }),
  SubscribeEvents: (answer: { event: Event }, { actor }, { owners }) => {
    const { sandboxId, actor: by } = answer.event;
    return (sandboxId === "" ? by : owners.ofSandbox(sandboxId)) === actor ? answer : undefined;
  },
};

/** About the daemon and the machine, or what everybody shares. */
const shared: ReadonlySet<string> = new Set([
  "GetHealth",
  "GetCapabilities",
  "Diagnose",
  "ListProfiles",
  "ListPresets",
  "GetConfig",
  "TrustProject",
  "GetUsage",
  "Prune",
  "CreateKey",
  "ListKeys",
  "RevokeKey",
  "ListImages",
  "ImportImage",
  "ImportSnapshot",
  "RemoveImage",
  "CollectImages",
  "ListSecrets",
  "SetSecret",
  "RemoveSecret",
  "VerifyAudit",
]);
