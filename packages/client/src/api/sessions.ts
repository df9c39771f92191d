import { CaissonError } from "@caisson/contract/errors";
import type { Caller } from "../call/caller.ts";
import type { CallOptions } from "../call/options.ts";
import { type Sandbox, type SandboxSpec, sandboxFrom, specInit } from "../values/sandbox.ts";
import { Box } from "./box.ts";

export interface Session {
  name: string;
  sandbox: Sandbox;
}

/** Sessions: one sandbox and one changeset under a name, shared by many commands. */
export class Sessions {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** The session's sandbox, which is made if there is none. A living session with another spec is an error. */
  async open(name: string, spec: SandboxSpec = {}, options?: CallOptions): Promise<Box> {
    const request = { name, spec: specInit(spec) };
    const { session } = await this.#caller.unary(
      (c) => c.SessionService.method.openSession,
      request,
      options,
    );
    return new Box(this.#caller, sessionFrom(session).sandbox);
  }

  async list(options?: CallOptions): Promise<Session[]> {
    const { sessions } = await this.#caller.unary((c) => c.SessionService.method.listSessions, {}, options);
    return sessions.map(sessionFrom);
  }

  /** Ends the session and its sandbox. */
  async close(name: string, options?: CallOptions): Promise<Session> {
    const { session } = await this.#caller.unary(
      (c) => c.SessionService.method.closeSession,
      { name },
      options,
    );
    return sessionFrom(session);
  }
}

type SessionMessage = { name: string; sandbox?: Parameters<typeof sandboxFrom>[0] | undefined };

function sessionFrom(message: SessionMessage | undefined): Session {
  if (!message?.sandbox) throw new CaissonError("INTERNAL", "the server answered without the session");
  return { name: message.name, sandbox: sandboxFrom(message.sandbox) };
}
