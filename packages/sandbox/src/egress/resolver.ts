// Names to addresses, on the host. The hosts file comes first, then the name servers, as on most machines; search
// domains are not used: a name means the same here as in the rules.

import { promises as dns } from "node:dns";
import { statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { type Address, parseAddress } from "./addresses.ts";

export interface ResolverOptions {
  /** `address` or `address:port`. Default: those of /etc/resolv.conf. */
  servers?: readonly string[];
  /** Default: /etc/hosts. */
  hostsFile?: string;
}

const maxNames = 4096;
const maxTtlS = 3600;
/** How long the lack of an answer counts. */
const failureTtlS = 2;
/** Once there are IPv4 addresses, IPv6 is waited for no longer than this. */
const patienceMs = 50;
const fileCheckMs = 1000;
const systemFile = "/etc/resolv.conf";

interface Cached {
  until: number;
  addresses: readonly Address[];
}

export class NameResolver {
  readonly #servers: readonly string[];
  readonly #hostsFile: string;
  readonly #cache = new Map<string, Cached>();
  readonly #underWay = new Map<string, Promise<readonly Address[]>>();
  #queries: dns.Resolver | undefined;
  #hosts = new Map<string, Address[]>();
  #versions = "";
  #checkedAt = Number.NEGATIVE_INFINITY;

  constructor({ servers = [], hostsFile = "/etc/hosts" }: ResolverOptions = {}) {
    this.#servers = servers;
    this.#hostsFile = hostsFile;
  }

  /** The addresses of a canonical name; empty if there are none. Rejects when no server answers. */
  async resolve(name: string): Promise<readonly Address[]> {
    if (name === "localhost" || name.endsWith(".localhost"))
      return [parseAddress("127.0.0.1")!, parseAddress("::1")!];
    await this.#refresh();
    const fixed = this.#hosts.get(name);
    if (fixed) return fixed;
    const cached = this.#cache.get(name);
    if (cached && cached.until > performance.now()) return cached.addresses;
    const underWay = this.#underWay.get(name);
    if (underWay) return underWay;
    const asked = this.#ask(name).finally(() => this.#underWay.delete(name));
    this.#underWay.set(name, asked);
    return asked;
  }

  async #ask(name: string): Promise<readonly Address[]> {
    this.#queries ??= this.#makeQueries();
    const four = answerOf(this.#queries.resolve4(name, { ttl: true }));
    const six = answerOf(this.#queries.resolve6(name, { ttl: true }));
    const first = await four;
    const second = first.records.length > 0 ? await Promise.race([six, later()]) : await six;
    const records = [...first.records, ...second.records];
    if (records.length === 0 && (first.error || second.error)) throw first.error ?? second.error;
    const ttl =
      records.length === 0 ? failureTtlS : Math.min(maxTtlS, ...records.map((record) => record.ttl));
    const addresses = records
      .map(({ address }) => parseAddress(address))
      .filter((address) => address !== undefined);
    this.#keep(name, addresses, ttl);
    return addresses;
  }

  #keep(name: string, addresses: readonly Address[], ttlS: number): void {
    this.#cache.delete(name);
    if (ttlS <= 0) return;
    if (this.#cache.size >= maxNames) this.#cache.delete(this.#cache.keys().next().value!);
    this.#cache.set(name, { addresses, until: performance.now() + ttlS * 1000 });
  }

  #makeQueries(): dns.Resolver {
    const queries = new dns.Resolver({ timeout: 2000, tries: 3 });
    if (this.#servers.length > 0) queries.setServers([...this.#servers]);
    return queries;
  }

  /** Both files may change while the daemon runs: a laptop moves between networks. */
  async #refresh(): Promise<void> {
    if (performance.now() - this.#checkedAt < fileCheckMs) return;
    this.#checkedAt = performance.now();
    const versions = `${versionOf(this.#hostsFile)} ${versionOf(systemFile)}`;
    if (versions === this.#versions) return;
    this.#versions = versions;
    this.#queries = undefined;
    this.#cache.clear();
    this.#hosts = await readHosts(this.#hostsFile);
  }
}

interface Answered {
  records: readonly { address: string; ttl: number }[];
  error?: unknown;
}

async function answerOf(asked: Promise<{ address: string; ttl: number }[]>): Promise<Answered> {
  try {
    return { records: await asked };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENODATA" || code === "ENOTFOUND" ? { records: [] } : { records: [], error };
  }
}

function later(): Promise<Answered> {
  return new Promise((resolve) => setTimeout(() => resolve({ records: [] }), patienceMs).unref());
}

function versionOf(file: string): string {
  const stat = statSync(file, { throwIfNoEntry: false });
  return stat ? `${stat.mtimeMs}:${stat.ino}:${stat.size}` : "none";
}

async function readHosts(file: string): Promise<Map<string, Address[]>> {
  const hosts = new Map<string, Address[]>();
  const text = await readFile(file, "utf8").catch(() => "");
  for (const line of text.split("\n")) {
    const [first = "", ...names] = line.replace(/#.*/, "").trim().split(/\s+/);
    const address = parseAddress(first);
    if (!address) continue;
    for (const name of names) {
      const key = name.toLowerCase();
      hosts.set(key, [...(hosts.get(key) ?? []), address]);
    }
  }
  return hosts;
}
