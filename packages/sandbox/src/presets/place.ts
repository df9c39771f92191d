import { canonicalHost } from "../egress/host.ts";
import { specialOf } from "../egress/special.ts";
import type { PresetHost, PresetName, ResolvedPreset } from "./preset.ts";
import type { ToldFile } from "./told.ts";

const ports: Readonly<Record<string, number>> = {
  "https:": 443,
  "http:": 80,
  "ssh:": 22,
  "git:": 9418,
  "git+ssh:": 22,
  "git+https:": 443,
};

/** What a rule calls the host behind a URL; undefined for one that leads to no host. */
export function ruleOfUrl(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const port = url && ports[url.protocol];
  if (!url || !port || url.hostname === "") return undefined;
  return `${url.hostname.replace(/\.$/, "").toLowerCase()}:${url.port || port}`;
}

/** Is the host an address, not a name, and not simply the internet? A rule about it would open it. */
export function isInnerAddress(url: string): boolean {
  const address = canonicalHost(new URL(url).hostname)?.address;
  return address !== undefined && specialOf(address) !== undefined;
}

/** A URL without user and password: what a sandbox may see. */
export function withoutCredentials(text: string): string {
  const url = new URL(text);
  url.username = "";
  url.password = "";
  return url.href;
}

/** Collects what a tool's configuration names. */
export class Places {
  readonly #name: PresetName;
  readonly #hosts = new Map<string, PresetHost>();
  readonly env: Record<string, string> = {};
  readonly files: ToldFile[] = [];
  readonly notes: string[] = [];

  constructor(name: PresetName) {
    this.#name = name;
  }

  /** Takes a URL; what leads to no host is noted. Returns whether it was understood. */
  add(url: string, from: string, project = false, byTool = false): boolean {
    const rule = ruleOfUrl(url);
    if (rule === undefined) {
      this.notes.push(`${from} names no host that can be reached`);
      return false;
    }
    if (project && isInnerAddress(url)) {
      this.notes.push(`${from} names an address that only the developer's own configuration may name`);
      return false;
    }
    const known = this.#hosts.get(rule);
    if (!known || (known.project && !project)) this.#hosts.set(rule, { rule, from, project, byTool });
    return true;
  }

  /** What the tool itself says where nothing is configured; `from` is how it was asked. */
  addOwn(urls: readonly string[] | undefined, from: string): void {
    if (urls === undefined)
      this.notes.push(`nothing is configured, and there is no ${this.#name} here to ask`);
    else if (urls.length === 0)
      this.notes.push(`nothing is configured, and ${from} did not say where it goes`);
    for (const url of urls ?? []) this.add(url, from, false, true);
  }

  get resolved(): ResolvedPreset {
    const { env, files, notes } = this;
    return { name: this.#name, hosts: [...this.#hosts.values()], env, files, notes };
  }
}
