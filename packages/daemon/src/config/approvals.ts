// What configuration, policy and the file of kept answers say about approvals.
import { randomBytes } from "node:crypto";
import { mkdir, open, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { CaissonError } from "@caisson/contract";
import {
  type ApprovalRule,
  type ApprovalSettings,
  isApprovalKind,
  type KeptRules,
  parseRules,
} from "@caisson/sandbox";
import type { Config } from "./config.ts";
import { readConfigFile } from "./files.ts";

const mostRules = 10_000;

/** Settings of approvals; what the configuration says wrong is an error at the daemon's start. */
export function approvalSettings(config: Config, file: string): Partial<ApprovalSettings> {
  const { policy } = config;
  const bounds = policy?.approvals ?? {};
  const kinds = config.list("approvals.ask").map((kind) => {
    if (isApprovalKind(kind)) return kind;
    throw new CaissonError(
      "CONFIG_INVALID",
      `approvals.ask names ${JSON.stringify(kind)}, which is not asked for`,
    );
  });
  return {
    timeoutMs: config.number("approvals.timeout_s") * 1000,
    kinds: kinds.filter((kind) => bounds.kinds?.includes(kind) ?? true),
    rules: parseRules(config.list("approvals.rules"), "approvals.rules"),
    forbidden: parseRules(
      (bounds.deny ?? []).map((subject) => `deny ${subject}`),
      policy?.path ?? "",
    ),
    always: bounds.always ?? true,
    kept: new RulesFile(file),
  };
}

/** The file of kept answers: a YAML document with a list `rules`, which people may edit. */
export class RulesFile implements KeptRules {
  readonly #path: string;
  #seen: { version: string; rules: ApprovalRule[] } | undefined;
  #adding: Promise<void> = Promise.resolve();

  constructor(path: string) {
    this.#path = path;
  }

  async read(): Promise<readonly ApprovalRule[]> {
    const version = await versionOf(this.#path);
    if (this.#seen?.version !== version) this.#seen = { version, rules: await this.#load() };
    return this.#seen.rules;
  }

  add(rule: string): Promise<void> {
    const adding = this.#adding.then(() => this.#append(rule));
    this.#adding = adding.catch(() => {});
    return adding;
  }

  async #load(): Promise<ApprovalRule[]> {
    const rules = (await readConfigFile(this.#path))?.tree.rules ?? [];
    if (!Array.isArray(rules) || !rules.every((rule) => typeof rule === "string") || rules.length > mostRules)
      throw new CaissonError("CONFIG_INVALID", `${this.#path}: rules must be a list of texts`);
    return parseRules(rules, this.#path);
  }

  /** Whole or not at all, and never with two opposite answers. */
  async #append(rule: string): Promise<void> {
    const rules = (await this.#load()).map(({ text }) => text);
    const opposite = rule.startsWith("allow ")
      ? rule.replace("allow", "deny")
      : rule.replace("deny", "allow");
    const kept = [...rules.filter((text) => text !== rule && text !== opposite), rule];
    const { stringify } = await import("yaml");
    const words =
      "# Answers for always, one per line. A refusal beats the others. Remove a line to be asked again.\n";
    await replaceFile(this.#path, words + stringify({ rules: kept }));
  }
}

async function versionOf(path: string): Promise<string> {
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  return found ? `${found.ino}.${found.mtimeNs}.${found.size}` : "none";
}

async function replaceFile(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.${randomBytes(6).toString("hex")}`;
  try {
    const file = await open(temporary, "wx", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw new CaissonError("STORAGE_FAILED", `${path} cannot be written`, { cause: error });
  }
}
