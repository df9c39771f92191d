import { CaissonError } from "@caisson/contract/errors";
import type { Caller } from "../call/caller.ts";
import type { CallOptions } from "../call/options.ts";

/** A secret, without its value. */
export interface Secret {
  /** Also the variable inside that holds its placeholder. */
  name: string;
  /** Which hosts get it. */
  hosts: string[];
  /** `header`, `basic`, `body`. */
  inject: string[];
  /** `stored`, or the variable, file or program that it is read from. */
  source: string;
  /** `configuration` or `set`. */
  definedIn: string;
}

export interface SetSecretOptions extends CallOptions {
  hosts: string[];
  /** Default: `header` and `basic`. */
  inject?: string[] | undefined;
  /** Exactly one of these: the value itself, or where the daemon finds it. */
  value?: string | undefined;
  env?: string | undefined;
  file?: string | undefined;
  command?: string[] | undefined;
}

/** Credentials that never enter a sandbox. */
export class Secrets {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async list(options?: CallOptions): Promise<Secret[]> {
    const { secrets } = await this.#caller.unary((c) => c.SecretService.method.listSecrets, {}, options);
    return secrets.map(secretFrom);
  }

  /** Defines a secret or replaces it. */
  async set(
    name: string,
    { hosts, inject = [], value, env, file, command, ...options }: SetSecretOptions,
  ): Promise<Secret> {
    const given = [
      ...(value === undefined ? [] : [{ case: "value" as const, value }]),
      ...(env === undefined ? [] : [{ case: "env" as const, value: env }]),
      ...(file === undefined ? [] : [{ case: "file" as const, value: file }]),
      ...(command === undefined ? [] : [{ case: "command" as const, value: { argv: command } }]),
    ];
    const [source] = given;
    if (!source || given.length > 1)
      throw new CaissonError("INVALID_INPUT", "a secret needs exactly one of value, env, file and command");
    const request = { name, hosts, inject, source };
    const { secret } = await this.#caller.unary((c) => c.SecretService.method.setSecret, request, options);
    if (!secret) throw new CaissonError("INTERNAL", "the server answered without the secret");
    return secretFrom(secret);
  }

  async remove(name: string, options?: CallOptions): Promise<void> {
    await this.#caller.unary((c) => c.SecretService.method.removeSecret, { name }, options);
  }
}

function secretFrom({ name, hosts, inject, source, definedIn }: Secret): Secret {
  return { name, hosts, inject, source, definedIn };
}
