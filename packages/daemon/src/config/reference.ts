// docs/configuration.md, made from the tables that the daemon itself goes by.
import { bounds } from "./policy.ts";
import { type Setting, settings } from "./settings.ts";

export function reference(): string {
  return [
    "<!-- Written by `node packages/daemon/src/config/write-reference.ts` from the tables of settings and bounds. -->",
    "",
    "# Configuration",
    "",
    "Nothing has to be configured. What is, comes from four places, each beating the one before:",
    "",
    "1. the defaults below;",
    "2. your own file, `$XDG_CONFIG_HOME/caisson/config.yaml` (`~/.config/caisson/config.yaml`, or what `CAISSON_CONFIG` names);",
    "3. variables of the daemon's environment: `CAISSON_LISTEN_TCP` for `listen.tcp`, lists with commas, tables as JSON;",
    "4. a project's `caisson.yaml`, once its content was trusted (`caisson config trust`), for the settings marked so.",
    "",
    "The machine's policy, `/etc/caisson/policy.yaml`, bounds them all. A request of its own (`--net`, `--memory`, `spec.…`) beats settings and is",
    "bounded like them. A name that does not exist, or a value of the wrong kind, is an error that says where it stands and what was probably meant.",
    "",
    "```sh",
    "caisson config show                    # every value, and where it comes from",
    "caisson config show --json | jq -r '.settings[] | select(.source != \"default\") | .key'",
    "```",
    "",
    "```yaml",
    "listen:",
    "  tcp: 127.0.0.1:7676",
    "sandbox:",
    "  network: ask",
    "  network_presets: [npm, git]",
    '  env: { CI: "1" }',
    "```",
    "",
    "The daemon reads your file and its variables when it starts (`caisson daemon restart`), a project's file for every new sandbox.",
    "",
    "## Settings",
    "| setting | default | project | what it does |",
    "|---|---|---|---|",
    ...Object.entries<Setting>(settings).map(
      ([key, setting]) =>
        `| \`${key}\` | ${shown(setting.default)} | ${setting.project ? "yes" : ""} | ${cell(about(setting))} |`,
    ),
    "",
    "## The machine's policy",
    "`/etc/caisson/policy.yaml`, owned by root and writable by nobody else, is for administrators. Nothing below it can weaken it; a request that asks for more",
    "gets less, or `POLICY_FORBIDS` where less makes no sense.",
    "",
    "| bound | what it does |",
    "|---|---|",
    ...Object.entries(bounds).map(([key, text]) => `| \`${key}\` | ${cell(text)} |`),
    "",
    "## Other variables",
    "| variable | what it does |",
    "|---|---|",
    ...Object.entries(otherVariables).map(([name, text]) => `| \`${name}\` | ${cell(text)} |`),
    "",
  ].join("\n");
}

const otherVariables = {
  CAISSON_HOME: "The data directory: a daemon of its own for each.",
  CAISSON_CONFIG: "Your file, where it is another one.",
  CAISSON_URL:
    "A daemon elsewhere, as `http://127.0.0.1:7676`; the command line then runs in a Node of its own.",
  CAISSON_KEY: "The key for it (`caisson keys create`).",
  CAISSON_ROOT: "The installation that the launcher starts the daemon from.",
  CAISSON_NODE: "The Node that it is started with.",
  CAISSON_GUEST: "The guest binary that the daemon uses.",
  CAISSON_DAEMON_COMMAND: "Another command to start the daemon with.",
  OTEL_EXPORTER_OTLP_ENDPOINT: "Where traces and metrics go; without it there are none but `/metrics`.",
} as const;

function about({ about: text, range, values }: Setting): string {
  const bound = range ? ` From ${range[0]} to ${range[1]}.` : "";
  const choice = values && !values.every((value) => value === "" || text.includes(`\`${value}\``));
  return `${text}${bound}${choice ? ` One of ${values.filter(Boolean).join(", ")}.` : ""}`;
}

function shown(value: unknown): string {
  const isEmpty = value === "" || (typeof value === "object" && Object.keys(value as object).length === 0);
  return isEmpty ? "" : cell(`\`${Array.isArray(value) ? value.join(", ") : String(value)}\``);
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}
