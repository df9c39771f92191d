// Where other parts meet the egress door: connections come in from the link, questions go to approvals, and
// connections to hosts with secrets go through the one who puts them in.
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Refusal } from "./refusal.ts";

export interface AskRequest {
  sandboxId: string;
  name: string;
  port: number;
  /** Why the rules do not allow it, as a sentence. */
  reason: string;
  /** Aborted when the program has given up or the time is over. */
  signal: AbortSignal;
}

export interface Answer {
  allow: boolean;
  /** How far it reaches: this connection, this sandbox, or every sandbox from now on. */
  scope: "once" | "sandbox" | "always";
  /** Who answered, as an actor of the log. */
  by: string;
}

/** Asks a person or a policy about a destination that no rule allows or denies; called for each connection. */
export type Ask = (request: AskRequest) => Promise<Answer>;

/** A target that was judged; `dial` connects to the judged address and nothing else, as often as it is called. */
export interface JudgedTarget {
  name: string;
  port: number;
  /** The program opened TLS: whoever serves it has to open it. */
  tls: boolean;
  dial(): Promise<Socket>;
  /** Records that a request was not passed on, or that the host could not be spoken to. */
  refused(refusal: Refusal): void;
  failed(reason: string): void;
}

/** Records what was done to a connection as an event of its sandbox. */
export type Report = (type: string, data: Record<string, unknown>) => void;

/** Serves connections to hosts that get secrets. */
export interface Interceptor {
  /** Shall connections to this name be opened? Asked for each of them. */
  wants(name: string, port: number): boolean;
  /** Takes the program's side over, from its first byte; resolves when the connection is over. */
  serve(client: Duplex, target: JudgedTarget, report: Report): Promise<void>;
  /** The headers of a plain request as they shall leave, as pairs; called for every host, wanted or not. */
  rewrite(
    name: string,
    port: number,
    headers: readonly (readonly [string, string])[],
    report: Report,
  ): [string, string][];
}
