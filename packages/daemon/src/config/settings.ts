// Every setting there is: its kind, default and meaning. The files, the environment and
// `caisson config show` all go by this table.
import { CaissonError } from "@caisson/contract";

type Kind = "text" | "number" | "boolean" | "list" | "table";

export interface Setting {
  kind: Kind;
  default: unknown;
  /** What it does, with unit and range. */
  about: string;
  /** The least and most a number may be. */
  range?: [number, number];
  /** The only values a text may have. */
  values?: readonly string[];
  /** May a project's trusted file set it? */
  project?: boolean;
}

export const tiers = ["container", "gvisor", "microvm"] as const;

export const settings = {
  "listen.tcp": {
    kind: "text",
    default: "127.0.0.1:7676",
    about:
      "Address for HTTP and gRPC beside the Unix socket; `off` for none. Another port is taken when the default is busy.",
  },
  "listen.allowed_hosts": {
    kind: "list",
    default: [],
    about: "Host names, beside loopback ones, that requests may be addressed to.",
  },
  "listen.allowed_origins": { kind: "list", default: [], about: "Web origins that may call from a browser." },
  "listen.requests_per_second": {
    kind: "number",
    default: 200,
    range: [1, 1_000_000],
    about: "Calls per second and key over the network.",
  },
  "auth.jwt.issuer": { kind: "text", default: "", about: "Accept tokens of this issuer; empty for none." },
  "auth.jwt.audience": { kind: "text", default: "caisson", about: "The audience that tokens must name." },
  "auth.jwt.jwks": { kind: "table", default: {}, about: "The issuer's public keys, as a JWKS document." },
  "auth.jwt.jwks_file": {
    kind: "text",
    default: "",
    about: "File with the issuer's public keys; read again when it changes.",
  },
  "auth.jwt.jwks_url": {
    kind: "text",
    default: "",
    about: "Address of the issuer's public keys: https, or http on this machine.",
  },
  "log.level": {
    kind: "text",
    default: "info",
    values: ["debug", "info", "warn", "error"],
    about: "Least important line that is written to the daemon's log.",
  },
  "log.events_kept_days": {
    kind: "number",
    default: 30,
    range: [1, 3650],
    about: "Days that the numbered log is kept.",
  },
  "daemon.renew": {
    kind: "boolean",
    default: true,
    about: "Replace the daemon between calls when its sources or its guest have changed; sandboxes live on.",
  },
  "pool.min": { kind: "number", default: 2, range: [0, 64], about: "Sandboxes kept warm at least." },
  "pool.max": {
    kind: "number",
    default: 8,
    range: [0, 256],
    about: "Sandboxes kept warm at most; 0 switches the pool off.",
  },
  "docker.host": {
    kind: "text",
    default: "",
    about:
      "The Docker engine's Unix socket, as `unix:///run/user/1000/docker.sock`; empty: DOCKER_HOST, the Docker context, or a usual place.",
  },
  "microvm.memory_mb": {
    kind: "number",
    default: 1024,
    range: [256, 65_536],
    about: "Memory that a microVM leaves to its sandbox, in MiB; a limit above it is a larger machine.",
  },
  "microvm.store": {
    kind: "text",
    default: "",
    about: "Directory for the images and templates of microVMs; empty: in the data directory.",
  },
  "microvm.programs": {
    kind: "text",
    default: "",
    about:
      "Directory in which `firecracker` and `jailer` are looked for first; empty: where administrators put programs.",
  },
  "admission.sandboxes": {
    kind: "number",
    default: 512,
    range: [1, 100_000],
    about: "Sandboxes alive at once; further ones wait.",
  },
  "admission.memory_percent": {
    kind: "number",
    default: 10_000,
    range: [1, 100_000],
    about: "Sum of the sandboxes' memory limits, in percent of the machine's memory.",
  },
  "admission.cpu_percent": {
    kind: "number",
    default: 10_000,
    range: [1, 1_000_000],
    about: "Sum of the sandboxes' processor limits, in percent of the machine's processors.",
  },
  "admission.queue": {
    kind: "number",
    default: 256,
    range: [0, 100_000],
    about: "Sandboxes that may wait for a place.",
  },
  "sandbox.profile": {
    kind: "text",
    default: "moderate",
    about: "Profile of a sandbox that names none.",
    project: true,
  },
  "sandbox.minimum_tier": {
    kind: "text",
    default: "container",
    values: tiers,
    about: "Least isolation of a sandbox that asks for none.",
    project: true,
  },
  "sandbox.toolchains": {
    kind: "text",
    default: "auto",
    values: ["auto", "off"],
    about:
      "The host's toolchains that the caller's PATH uses: `auto` leaves it to the profile, `off` shows none to a sandbox that does not ask.",
    project: true,
  },
  "sandbox.image": {
    kind: "text",
    default: "host",
    about: "What a sandbox that names none is made from: `host`, an imported image, or a directory.",
    project: true,
  },
  "sandbox.network": {
    kind: "text",
    default: "",
    values: ["", "off", "allow", "ask", "on"],
    about:
      "What a sandbox may reach that says nothing about it: `off`, `allow`, `ask` or `on`; empty for the profile's.",
    project: true,
  },
  "sandbox.network_allow": {
    kind: "list",
    default: [],
    about:
      "Names, `*.names`, addresses and ranges, with a port if wanted, that every sandbox may reach when its network is not off.",
    project: true,
  },
  "sandbox.network_deny": {
    kind: "list",
    default: [],
    about: "What no sandbox may reach, whatever allows it.",
    project: true,
  },
  "sandbox.network_presets": {
    kind: "list",
    default: [],
    about: "Presets such as `npm` that every sandbox gets when its network is not off.",
    project: true,
  },
  "network.dns_servers": {
    kind: "list",
    default: [],
    about: "Name servers for what sandboxes reach, as `address` or `address:port`; empty for the system's.",
  },
  "sandbox.git_name": {
    kind: "text",
    default: "",
    about: "Who commits inside; with sandbox.git_email.",
    project: true,
  },
  "sandbox.git_email": {
    kind: "text",
    default: "",
    about: "The address of who commits inside.",
    project: true,
  },
  "sandbox.caches": {
    kind: "list",
    default: [],
    about:
      "What is kept per project: caches (npm, cargo, pip, go, maven, or all of these), agents' directories (claude, codex, gemini).",
    project: true,
  },
  "sandbox.env": { kind: "table", default: {}, about: "Variables for every command.", project: true },
  "sandbox.idle_ttl_s": {
    kind: "number",
    default: 3600,
    range: [1, 0xffffffff],
    about: "Seconds without a command after which a sandbox ends.",
    project: true,
  },
  "approvals.timeout_s": {
    kind: "number",
    default: 60,
    range: [1, 3600],
    about: "Seconds that a request waits for an answer; none is a refusal.",
  },
  "approvals.ask": {
    kind: "list",
    default: ["network"],
    about:
      "What is asked for: `network` (destinations under `ask`), `profile` (another one than the agent's rule gives), `apply` and `write-outside` (by keys without the scope `approve`).",
  },
  "approvals.rules": {
    kind: "list",
    default: [],
    about:
      "Answers without a person: `allow network *.example.com:443`, `deny network * for codex`. A refusal beats the others.",
  },
  secrets: {
    kind: "table",
    default: {},
    about:
      "Credentials that never enter a sandbox: `{ API_TOKEN: { env: API_TOKEN, hosts: [api.example.com] } }`, with `file` or `command` instead of `env`.",
  },
  "network.extra_ca": {
    kind: "text",
    default: "",
    about: "File of certificates, beside the host's own, with which hosts that get secrets are verified.",
  },
  profiles: {
    kind: "table",
    default: {},
    about: "Profiles of your own, by name; see `caisson profile show`.",
  },
  agents: {
    kind: "table",
    default: {},
    about:
      "What each kind of agent gets at least: `{ claude-code: { minimum_tier: gvisor, profile: restrictive } }`.",
  },
} as const satisfies Record<string, Setting>;

export type SettingKey = keyof typeof settings;

export function isSettingKey(key: string): key is SettingKey {
  return Object.hasOwn(settings, key);
}

/** Checks a value against its setting; `where` names the file or variable. */
export function checkValue(key: SettingKey, value: unknown, where: string): unknown {
  const setting: Setting = settings[key];
  const wrong = (want: string): never => {
    throw new CaissonError("CONFIG_INVALID", `${where}: ${key} must be ${want}`);
  };
  switch (setting.kind) {
    case "text":
      if (typeof value !== "string") return wrong("text");
      if (setting.values && !setting.values.includes(value))
        return wrong(`one of ${setting.values.join(", ")}`);
      return value;
    case "number": {
      const [least, most] = setting.range ?? [0, Number.MAX_SAFE_INTEGER];
      if (typeof value !== "number" || !Number.isInteger(value) || value < least || value > most) {
        return wrong(`a whole number from ${least} to ${most}`);
      }
      return value;
    }
    case "boolean":
      return typeof value === "boolean" ? value : wrong("true or false");
    case "list":
      return Array.isArray(value) && value.every((item) => typeof item === "string")
        ? value
        : wrong("a list of texts");
    case "table":
      return typeof value === "object" && value !== null && !Array.isArray(value) ? value : wrong("a table");
  }
}

/** A variable's text as a value of its setting's kind. */
export function parseText(key: SettingKey, text: string): unknown {
  switch (settings[key].kind as Kind) {
    case "number":
      return /^\d+$/.test(text) ? Number(text) : text;
    case "boolean":
      return text === "true" ? true : text === "false" ? false : text;
    case "list":
      return text === "" ? [] : text.split(",").map((item) => item.trim());
    case "table":
      try {
        return JSON.parse(text);
      } catch {
        return text;
      }
    default:
      return text;
  }
}

/** `CAISSON_LISTEN_TCP` for `listen.tcp`. */
export function variableOf(key: SettingKey): string {
  return `CAISSON_${key.toUpperCase().replaceAll(".", "_")}`;
}
