import { CaissonError } from "@caisson/contract";
import { Binding, isSecretName, parseDefinition, type SecretDefinition } from "./definition.ts";
import type { GrantedSecret } from "./injector.ts";
import { checkValue, readValue } from "./value.ts";
import { Vault } from "./vault.ts";

/** A value is read again after this time, so that a new one counts without a restart. */
const freshMs = 60_000;
const mostSecrets = 32;

export interface DefinedSecret {
  definition: SecretDefinition;
  /** `configuration`, or `set` by command. */
  from: "configuration" | "set";
}

interface Known {
  definition: SecretDefinition;
  binding: Binding;
  from: DefinedSecret["from"];
  value?: string;
  readAt: number;
  reading?: Promise<string>;
}

/** Every secret there is. Values stay in this process. */
export class Secrets {
  readonly #configured: readonly SecretDefinition[];
  readonly #vault: Vault;
  #known: Promise<Map<string, Known>> | undefined;
  #loaded: Map<string, Known> | undefined;

  /** `file`: where those are kept that are set by command. */
  constructor(configured: readonly SecretDefinition[], file: string) {
    this.#configured = configured;
    this.#vault = new Vault(file);
  }

  async list(): Promise<DefinedSecret[]> {
    const known = [...(await this.#all()).values()];
    return known.map(({ definition, from }) => ({ definition, from }));
  }

  /** Defines a secret, or another value of it. Without a reference its value is kept in the data directory. */
  async set(
    name: string,
    definition: Record<string, unknown>,
    value: string | undefined,
  ): Promise<DefinedSecret> {
    if (!isSecretName(name))
      throw new CaissonError(
        "INVALID_INPUT",
        "a secret's name is a variable's name of at most 64 characters",
      );
    const wrong = (why: string) => new CaissonError("INVALID_INPUT", `the secret ${name} ${why}`);
    if (value !== undefined) checkValue(value, wrong);
    if (this.#configured.some((each) => each.name === name))
      throw wrong("is defined in the configuration; change it there");
    const parsed = parseDefinition(name, definition);
    await this.#all();
    await this.#vault.set(name, { definition, ...(value === undefined ? {} : { value }) });
    this.#known = undefined;
    await this.#all();
    return { definition: parsed, from: "set" };
  }

  async remove(name: string): Promise<void> {
    const known = (await this.#all()).get(name);
    if (known?.from === "configuration")
      throw new CaissonError(
        "INVALID_INPUT",
        `the secret ${name} is defined in the configuration; remove it there`,
      );
    if (!known || !(await this.#vault.remove(name))) throw notFound(name);
    this.#known = undefined;
    await this.#all();
  }

  /** Checks that these are there and can be read; resolves with their values. */
  async read(names: readonly string[]): Promise<Map<string, string>> {
    if (names.length > mostSecrets)
      throw new CaissonError("INVALID_INPUT", `a sandbox may have ${mostSecrets} secrets`);
    const all = await this.#all();
    const values = await Promise.all(
      names.map(async (name): Promise<[string, string]> => {
        const known = all.get(name);
        if (!known) throw notFound(name);
        return [name, await this.#read(known)];
      }),
    );
    return new Map(values);
  }

  /** A secret as a sandbox has it. It follows what becomes of the secret: one that is removed is put in nowhere. */
  granted(name: string, placeholder: string): GrantedSecret {
    const known = () => this.#loaded?.get(name);
    return {
      name,
      placeholder,
      get inject() {
        return known()?.definition.inject ?? [];
      },
      value: () => {
        const found = known();
        if (found && performance.now() - found.readAt > freshMs) this.#read(found).catch(() => {});
        return found?.value;
      },
      covers: (host, port, tls) => known()?.binding.covers(host, port, tls) ?? false,
    };
  }

  #read(known: Known): Promise<string> {
    known.reading ??= readValue(known.definition, (name) => this.#vault.value(name))
      .then((value) => {
        known.value = value;
        return value;
      })
      .finally(() => {
        known.readAt = performance.now();
        delete known.reading;
      });
    return known.reading;
  }

  #all(): Promise<Map<string, Known>> {
    this.#known ??= this.#load();
    this.#known.catch(() => {
      this.#known = undefined;
    });
    return this.#known;
  }

  async #load(): Promise<Map<string, Known>> {
    const set = await this.#vault.definitions();
    const before = this.#loaded;
    const entry = (definition: SecretDefinition, from: DefinedSecret["from"]): [string, Known] => {
      const value = from === "configuration" ? before?.get(definition.name)?.value : undefined;
      const binding = new Binding(definition);
      return [
        definition.name,
        { definition, binding, from, readAt: Number.NEGATIVE_INFINITY, ...(value && { value }) },
      ];
    };
    const known = new Map([
      ...set.map((definition) => entry(definition, "set")),
      ...this.#configured.map((definition) => entry(definition, "configuration")),
    ]);
    await Promise.all(
      [...known.values()]
        .filter(({ definition }) => before?.get(definition.name)?.value)
        .map((each) => this.#read(each).catch(() => {})),
    );
    this.#loaded = known;
    return known;
  }
}

function notFound(name: string): CaissonError {
  return new CaissonError("SECRET_NOT_FOUND", `there is no secret ${JSON.stringify(name)}`);
}
