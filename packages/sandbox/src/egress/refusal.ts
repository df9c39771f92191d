import { CaissonError } from "@caisson/contract";
import type { Verdict } from "./policy.ts";

/** A connection that does not come about because of a judgement. */
export class Refusal extends Error {
  readonly verdict: Verdict;
  /** The address that was the reason, if it was one. */
  readonly address: string;

  constructor(verdict: Verdict, address = "") {
    super(verdict.reason);
    this.verdict = verdict;
    this.address = address;
  }

  static because(rule: string, reason: string, add?: string): Refusal {
    return new Refusal({ verdict: "refused", rule, reason, ...(add ? { add } : {}) });
  }
}

/** A connection that was allowed and failed. `kind` is what the program is told in its own protocol. */
export class Failure extends Error {
  readonly kind: "no address" | "refused" | "unreachable" | "timeout";

  constructor(kind: Failure["kind"], message: string) {
    super(message);
    this.kind = kind;
  }
}

/** What a failed dial or lookup means. */
export function toFailure(thrown: unknown, what: string): Failure {
  if (thrown instanceof Failure) return thrown;
  const code = (thrown as NodeJS.ErrnoException | undefined)?.code ?? "";
  const name = (thrown as Error | undefined)?.name;
  if (code === "ETIMEDOUT" || code === "ETIMEOUT" || name === "TimeoutError")
    return new Failure("timeout", `${what} did not answer in time`);
  if (code === "ECONNREFUSED") return new Failure("refused", `${what} refused the connection`);
  return new Failure(
    "unreachable",
    `${what} cannot be reached${/^E[A-Z0-9]+$/.test(code) ? `: ${code}` : ""}`,
  );
}

/** One line for the program: what was decided, and how a person could change that. */
export function sentence(refusal: Refusal, sandboxId: string): string {
  const { reason, add } = refusal.verdict;
  return `caisson: ${reason}${add ? howToAllow(add, sandboxId) : ""}`;
}

/** For the next sandbox, and for this one while it lives. */
export function howToAllow(add: string, sandboxId: string): string {
  return `; to allow it: --allow ${add}, or at once: caisson net set ${sandboxId} --allow ${add}`;
}

/** For errors of our own making that end up where a refusal is expected. */
export function asRefusalOrFailure(thrown: unknown, what: string): Refusal | Failure {
  if (thrown instanceof Refusal) return thrown;
  if (thrown instanceof CaissonError) return Refusal.because("error", thrown.message);
  return toFailure(thrown, what);
}
