import { randomUUID } from "node:crypto";
import { type CallContext, parseAttempt, parseTraceparent, rules } from "@caisson/contract";
import { giveBack } from "@caisson/contract/lent";
import type { RequestEnvelope } from "@caisson/contract/ttrpc";
import type { Route } from "../routes.ts";
import type { Inbox } from "./inbox.ts";

/** setTimeout's own bound. */
const longestTimerMs = 2 ** 31 - 1;

/** More than wait at once in most uploads; the garbage collector has the others. */
const mostNoted = 16;

/** One call on a connection. Most calls need neither signal, id nor timer: each is made when it is asked for. */
export class TtrpcCall implements CallContext {
  readonly stream: number;
  readonly route: Route;
  readonly actor: string;
  readonly traceparent?: string;
  readonly attempt?: number;
  inbox: Inbox | undefined;
  /** An answer was sent; whatever comes later is dropped. */
  answered = false;
  #requestId: string | undefined;
  #controller: AbortController | undefined;
  #aborted: { reason: DOMException } | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #noted: Buffer[] = [];

  constructor(stream: number, route: Route, request: RequestEnvelope, actor: string) {
    this.stream = stream;
    this.route = route;
    this.actor = actor;
    const traceparent = request.metadata.get("traceparent");
    if (traceparent !== undefined && parseTraceparent(traceparent) !== undefined)
      this.traceparent = traceparent;
    const attempt = parseAttempt(request.metadata.get(rules.retry.attempt_header));
    if (attempt !== undefined) this.attempt = attempt;
  }

  get requestId(): string {
    this.#requestId ??= randomUUID();
    return this.#requestId;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted.reason);
    }
    return this.#controller.signal;
  }

  get aborted(): boolean {
    return this.#aborted !== undefined;
  }

  abort(reason: DOMException): void {
    if (this.#aborted !== undefined) return;
    this.#aborted = { reason };
    this.#controller?.abort(reason);
    this.inbox?.fail(reason);
  }

  /** Calls back when the caller's deadline has passed. */
  limit(timeoutNano: number, onDeadline: () => void): void {
    const ms = Math.max(0, Math.ceil(timeoutNano / 1e6));
    if (ms <= longestTimerMs) this.#timer = setTimeout(onDeadline, ms);
  }

  /** Remembers memory that was lent for a message of an upload. */
  note(payload: Buffer): void {
    if (!this.route.answersStream && this.#noted.length < mostNoted) this.#noted.push(payload);
  }

  /** To be called when the handler has answered: it is done with what it was sent. One that failed may not be. */
  giveBackNoted(): void {
    for (const payload of this.#noted.splice(0)) giveBack(payload);
  }

  finish(): void {
    this.answered = true;
    clearTimeout(this.#timer);
  }
}
