import defaults from "./defaults.json" with { type: "json" };
import type { PresetHost, PresetName, ResolvedPreset } from "./preset.ts";

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
  readonly notes: string[] = [];

  constructor(name: PresetName) {
    this.#name = name;
  }

  /** Takes a URL; what leads to no host is noted. Returns whether it was understood. */
  add(url: string, from: string, project = false): boolean {
    const rule = ruleOfUrl(url);
    if (rule === undefined) {
      this.notes.push(`${from} names no host that can be reached`);
      return false;
    }
    const known = this.#hosts.get(rule);
    if (!known || (known.project && !project)) this.#hosts.set(rule, { rule, from, project });
    return true;
  }

  /** What the tool's documentation says when nothing is configured. */
  addDefaults(): void {
    for (const url of defaults[this.#name]) this.add(url, "default");
  }

  get resolved(): ResolvedPreset {
    return { name: this.#name, hosts: [...this.#hosts.values()], env: this.env, notes: this.notes };
  }
}

/** What leads to the same host as one of a tool's own defaults. */
export function isDefault(name: PresetName, url: string): boolean {
  const rule = ruleOfUrl(url);
  return defaults[name].some((known) => ruleOfUrl(known) === rule);
}
