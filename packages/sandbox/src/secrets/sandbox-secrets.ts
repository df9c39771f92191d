import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "@caisson/contract";
import type { Interceptor } from "../egress/seams.ts";
import { Authority, type AuthorityRecord } from "./authority.ts";
import { Injector } from "./injector.ts";
import { SecretInterceptor } from "./interceptor.ts";
import { newPlaceholder } from "./placeholder.ts";
import type { Secrets } from "./secrets.ts";
import { hostRoots, readCertificates, trustDirectory, trustEnv, trustFiles } from "./trust.ts";

const fileName = "secrets.json";

/** What is kept of a sandbox's secrets: no value, but the key of its authority. */
interface Kept {
  authority: AuthorityRecord;
  placeholders: [name: string, placeholder: string][];
  /** Where the certificates lie inside. */
  directory: string;
}

/** The secrets of one sandbox: what it sees of them, and who puts them in. */
export class SandboxSecrets {
  readonly interceptor: Interceptor;
  readonly #kept: Kept;

  private constructor(kept: Kept, secrets: Secrets, roots: readonly string[]) {
    this.#kept = kept;
    const granted = kept.placeholders.map(([name, placeholder]) => secrets.granted(name, placeholder));
    this.interceptor = new SecretInterceptor(new Injector(granted), new Authority(kept.authority), roots);
  }

  /** For a new sandbox. Rejects if one of them is not there or cannot be read. */
  static async grant(
    names: readonly string[],
    secrets: Secrets,
    options: { extraCa: string; allowWrite: readonly string[] },
  ): Promise<SandboxSecrets> {
    const directory = trustDirectory(options.allowWrite);
    const values = await secrets.read([...new Set(names)]);
    const placeholders = [...values].map(([name, value]): [string, string] => [name, newPlaceholder(value)]);
    const kept = { authority: Authority.make("Caisson, for one sandbox alone"), placeholders, directory };
    return new SandboxSecrets(kept, secrets, await upstreamRoots(options.extraCa));
  }

  /** For a sandbox that an earlier daemon made. */
  static async adopt(dir: string, secrets: Secrets, extraCa: string): Promise<SandboxSecrets> {
    const kept = JSON.parse(await readFile(join(dir, fileName), "utf8")) as Kept;
    await secrets.read(kept.placeholders.map(([name]) => name)).catch(() => {});
    return new SandboxSecrets(kept, secrets, await upstreamRoots(extraCa));
  }

  /** In the sandbox's directory on the host, which nothing inside can see. */
  async keep(dir: string): Promise<void> {
    await writeFile(join(dir, fileName), JSON.stringify(this.#kept), { mode: 0o600, flag: "wx" });
  }

  /** Variables of every command: placeholders, and where the authority is found. */
  get env(): Record<string, string> {
    return { ...trustEnv(this.#kept.directory), ...Object.fromEntries(this.#kept.placeholders) };
  }

  /** Files that have to be inside before the first command. */
  files(): Promise<{ path: string; content: Buffer }[]> {
    return trustFiles(this.#kept.directory, this.#kept.authority.certificate);
  }
}

const rootsByFile = new Map<string, Promise<readonly string[]>>();

/** Whom hosts are verified with: one list for all, so that it is read once. */
function upstreamRoots(extraCa: string): Promise<readonly string[]> {
  const known = rootsByFile.get(extraCa);
  if (known) return known;
  const reading = (async () => [...(await hostRoots()), ...(extraCa ? await readExtra(extraCa) : [])])();
  rootsByFile.set(extraCa, reading);
  reading.catch(() => rootsByFile.delete(extraCa));
  return reading;
}

async function readExtra(path: string): Promise<string[]> {
  const found = await readCertificates(path).catch(() => []);
  if (found.length === 0)
    throw new CaissonError("CONFIG_INVALID", `network.extra_ca: ${path} holds no certificate`);
  return found;
}
