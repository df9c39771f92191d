import { CaissonError, type Command, rules, type SandboxSpec } from "@caisson/contract";

// Everything that can be judged by looking at a request alone.

const encoder = new TextEncoder();

export function invalid(message: string): CaissonError {
  return new CaissonError("INVALID_INPUT", message);
}

/** An id that no daemon ever made names nothing; it is not looked up. */
export function checkSandboxId(id: string): string {
  if (id === "") throw invalid("`sandbox_id` is missing");
  if (!/^(sb_[a-z0-9]{1,64}|session:[A-Za-z0-9._-]{1,128})$/.test(id)) {
    throw new CaissonError("SANDBOX_NOT_FOUND", "there is no such sandbox");
  }
  return id;
}

export function checkProcessId(id: string): string {
  if (id === "") throw invalid("`process_id` is missing");
  if (!/^p[0-9]{1,9}$/.test(id)) throw new CaissonError("PROCESS_NOT_FOUND", "there is no such process");
  return id;
}

export function checkForwardId(id: string): string {
  if (id === "") throw invalid("`forward_id` is missing");
  if (!/^fw_[0-9a-f]{16}$/.test(id)) throw new CaissonError("FORWARD_NOT_FOUND", "there is no such forward");
  return id;
}

export function checkPort(port: number, field: string): number {
  if (port < 1 || port > 65_535) throw invalid(`\`${field}\` must be 1 to 65535`);
  return port;
}

export function checkKey(key: string): string {
  if (key !== "" && !/^[\x21-\x7e]{1,128}$/.test(key)) {
    throw invalid("`idempotency_key` must be 1 to 128 printable ASCII characters without spaces");
  }
  return key;
}

export function checkSessionName(name: string): string {
  if (!/^[A-Za-z0-9._-]{1,128}$/.test(name)) {
    throw invalid("a session's name must be 1 to 128 characters of [A-Za-z0-9._-]");
  }
  return name;
}

export function checkKeyName(name: string): string {
  if (!/^[A-Za-z0-9._-]{1,64}$/.test(name)) {
    throw invalid("a key's name must be 1 to 64 characters of [A-Za-z0-9._-]");
  }
  return name;
}

export function checkSpec(spec: SandboxSpec | undefined): SandboxSpec | Record<string, never> {
  if (spec === undefined) return {};
  checkLabels(spec.labels);
  checkEnv(spec.env, "spec.env");
  return spec;
}

export function checkLabels(labels: Record<string, string>): Record<string, string> {
  const entries = Object.entries(labels);
  if (entries.length > rules.sizes.labels) throw invalid(`there may be at most ${rules.sizes.labels} labels`);
  for (const [key, value] of entries) {
    if (!/^[a-z0-9._/-]{1,63}$/.test(key)) {
      throw invalid("a label's key must be 1 to 63 characters of [a-z0-9._/-]");
    }
    if (encoder.encode(value).length > 255) throw invalid("a label's value may have at most 255 bytes");
  }
  return labels;
}

export function checkCommand(command: Command | undefined): Command {
  if (command === undefined || command.argv.length === 0 || command.argv[0] === "") {
    throw invalid("`command.argv` must name a program");
  }
  if (command.argv.some((argument) => argument.includes("\0"))) {
    throw invalid("an argument may not contain NUL");
  }
  if (command.user !== "" && command.user !== "agent" && command.user !== "root") {
    throw invalid("`command.user` must be `agent` or `root`");
  }
  if (command.shellState && command.argv.length !== 1) {
    throw invalid("with `shell_state`, `command.argv` must be one shell script");
  }
  if (command.terminal !== undefined) checkWindow(command.terminal.columns, command.terminal.rows);
  checkEnv(command.env, "command.env");
  return command;
}

export function checkWindow(columns: number, rows: number): void {
  if (columns > 65_535 || rows > 65_535) throw invalid("a terminal has at most 65535 columns and rows");
}

function checkEnv(env: Record<string, string>, field: string): void {
  for (const [name, value] of Object.entries(env)) {
    if (name === "" || name.includes("=") || name.includes("\0")) {
      throw invalid(`\`${field}\` has a name that is empty or contains \`=\` or NUL`);
    }
    if (value.includes("\0")) throw invalid(`\`${field}\` has a value that contains NUL`);
  }
}

/** Permission bits alone: nothing written from outside is ever set-uid. */
export function checkMode(mode: number): number {
  if ((mode & ~0o777) !== 0) throw invalid("`mode` may only have permission bits (0 to 0777)");
  return mode;
}

export function checkPageSize(size: number): number {
  if (size > rules.sizes.page_size_max) {
    throw invalid(`\`page_size\` may be at most ${rules.sizes.page_size_max}`);
  }
  return size === 0 ? rules.sizes.page_size_default : size;
}

/** A place in the log or the output. */
export function checkPosition(from: bigint, field: string): number {
  if (from > BigInt(Number.MAX_SAFE_INTEGER)) throw invalid(`\`${field}\` is beyond every number there is`);
  return Number(from);
}
