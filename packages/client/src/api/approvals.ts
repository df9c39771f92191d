import { CaissonError } from "@caisson/contract/errors";
import type { Caller } from "../call/caller.ts";
import type { CallOptions, OnceOptions } from "../call/options.ts";
import { type Approval, approvalFrom, type DecisionScope, decisionScopeNumber } from "../values/approval.ts";
import type { Events } from "./events.ts";

export interface ListApprovalsOptions extends CallOptions {
  /** Only of this sandbox: an id, or `session:NAME`. */
  sandboxId?: string | undefined;
  /** Also those that were answered within the last day. Default: false. */
  all?: boolean | undefined;
}

export interface DecideOptions extends OnceOptions {
  /** How far the answer reaches. Default: `once`. */
  scope?: DecisionScope | undefined;
}

const longestWaitMs = 3_700_000;

/** Requests that wait for a person. */
export class Approvals {
  readonly #caller: Caller;
  readonly #events: Events;

  constructor(caller: Caller, events: Events) {
    this.#caller = caller;
    this.#events = events;
  }

  /** Newest first; asks for page after page as the loop goes on. */
  async *list({
    sandboxId = "",
    all = false,
    ...options
  }: ListApprovalsOptions = {}): AsyncGenerator<Approval> {
    let pageToken = "";
    do {
      const request = { sandboxId, all, pageSize: 0, pageToken };
      const page = await this.#caller.unary((c) => c.ApprovalService.method.listApprovals, request, options);
      yield* page.approvals.map(approvalFrom);
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
  }

  async get(id: string, options?: CallOptions): Promise<Approval> {
    const request = { approvalId: id };
    const { approval } = await this.#caller.unary(
      (c) => c.ApprovalService.method.getApproval,
      request,
      options,
    );
    return found(approval);
  }

  /** Lets what asked go on. */
  allow(id: string, options?: DecideOptions): Promise<Approval> {
    return this.#decide(id, true, options);
  }

  /** Refuses it. */
  deny(id: string, options?: DecideOptions): Promise<Approval> {
    return this.#decide(id, false, options);
  }

  /** Every request that waits now, then each as it comes, until the signal is aborted. */
  async *watch({ sandboxId, ...options }: Omit<ListApprovalsOptions, "all"> = {}): AsyncGenerator<Approval> {
    const types = ["approval.requested"];
    for await (const { at, data } of this.#events.subscribe({ ...options, sandboxId, types })) {
      // Nothing waits longer than this, so that the past costs nothing.
      if (at && Date.now() - at.getTime() > longestWaitMs) continue;
      const approval = await this.get(String(data.id), options).catch(() => undefined);
      if (approval?.state === "pending") yield approval;
    }
  }

  async #decide(
    id: string,
    allow: boolean,
    { scope = "once", ...options }: DecideOptions = {},
  ): Promise<Approval> {
    const idempotencyKey = this.#caller.key(options);
    const { approval } = await this.#caller.unary(
      (c) => c.ApprovalService.method.decideApproval,
      { approvalId: id, idempotencyKey, allow, decisionScope: decisionScopeNumber(scope) },
      options,
      { key: idempotencyKey },
    );
    return found(approval);
  }
}

function found(approval: Parameters<typeof approvalFrom>[0] | undefined): Approval {
  if (!approval) throw new CaissonError("INTERNAL", "the server answered without the approval");
  return approvalFrom(approval);
}
