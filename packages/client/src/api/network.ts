import { CaissonError } from "@caisson/contract/errors";
import type { Caller } from "../call/caller.ts";
import type { CallOptions, OnceOptions } from "../call/options.ts";
import {
  decisionFrom,
  type Network,
  type NetworkDecision,
  type NetworkMode,
  networkFrom,
  networkLimitsInit,
  networkModeNumber,
} from "../values/network.ts";
import { toNumber } from "../values/numbers.ts";

export interface NetworkState {
  network: Network & { mode: NetworkMode };
  /** What the presets have led to. */
  presetRules: string[];
}

/** A change: what is named is added, the rest stays. */
export interface NetworkChange extends Network {
  /** Begin without the rules there are. Default: false. */
  clear?: boolean | undefined;
  /** Rules and presets to take away, as they were given. */
  remove?: readonly string[] | undefined;
}

export interface DecisionOptions extends CallOptions {
  /** Only of this sandbox: an id, or `session:NAME`. */
  sandboxId?: string | undefined;
  /** Default: false. */
  refusedOnly?: boolean | undefined;
}

/** What one sandbox may reach. */
export class BoxNetwork {
  readonly #caller: Caller;
  readonly #sandboxId: string;

  constructor(caller: Caller, sandboxId: string) {
    this.#caller = caller;
    this.#sandboxId = sandboxId;
  }

  async get(
    options?: CallOptions,
  ): Promise<NetworkState & { connections: number; sentBytes: number; receivedBytes: number }> {
    const request = { sandboxId: this.#sandboxId };
    const answer = await this.#caller.unary((c) => c.NetworkService.method.getNetwork, request, options);
    return {
      ...stateFrom(answer),
      connections: answer.usage?.connections ?? 0,
      sentBytes: toNumber(answer.usage?.sentBytes ?? 0n),
      receivedBytes: toNumber(answer.usage?.receivedBytes ?? 0n),
    };
  }

  /** In force when it returns, also for open connections: `cut` says how many it ended. */
  async update(change: NetworkChange, options: OnceOptions = {}): Promise<NetworkState & { cut: number }> {
    const idempotencyKey = this.#caller.key(options);
    const request = {
      sandboxId: this.#sandboxId,
      idempotencyKey,
      clear: change.clear ?? false,
      mode: networkModeNumber(change.mode),
      allow: [...(change.allow ?? [])],
      deny: [...(change.deny ?? [])],
      presets: [...(change.presets ?? [])],
      remove: [...(change.remove ?? [])],
      ...networkLimitsInit(change.limits),
    };
    const answer = await this.#caller.unary((c) => c.NetworkService.method.updateNetwork, request, options, {
      key: idempotencyKey,
    });
    return { ...stateFrom(answer), cut: answer.cut };
  }

  /** What it tried to reach, newest first. */
  decisions(options: Omit<DecisionOptions, "sandboxId"> = {}): AsyncGenerator<NetworkDecision> {
    return listDecisions(this.#caller, { ...options, sandboxId: this.#sandboxId });
  }
}

/** What all sandboxes tried to reach. */
export class NetworkLog {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Newest first; asks for page after page as the loop goes on. */
  decisions(options?: DecisionOptions): AsyncGenerator<NetworkDecision> {
    return listDecisions(this.#caller, options);
  }
}

async function* listDecisions(
  caller: Caller,
  { sandboxId = "", refusedOnly = false, ...options }: DecisionOptions = {},
): AsyncGenerator<NetworkDecision> {
  let pageToken = "";
  do {
    const request = { sandboxId, refusedOnly, pageSize: 0, pageToken };
    const page = await caller.unary((c) => c.NetworkService.method.listDecisions, request, options);
    yield* page.decisions.map(decisionFrom);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
}

function stateFrom(answer: {
  network?: Parameters<typeof networkFrom>[0] | undefined;
  presetRules: string[];
}): NetworkState {
  if (!answer.network) throw new CaissonError("INTERNAL", "the server answered without the network");
  return { network: networkFrom(answer.network), presetRules: [...answer.presetRules] };
}
