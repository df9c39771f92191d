// The JSON documents of images: read strictly, since strangers wrote them.
import { CaissonError } from "@caisson/contract";
import type { ImageConfig } from "./record.ts";

const maxLayers = 128;
const maxWords = 1024;
const maxTextBytes = 32 * 1024;

export function wrong(what: string): CaissonError {
  return new CaissonError("IMAGE_INVALID", what);
}

export function parseObject(bytes: Uint8Array, what: string): Record<string, unknown> {
  return asObject(parseJson(bytes, what), what);
}

export function parseJson(bytes: Uint8Array, what: string): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw wrong(`its ${what} is not JSON`);
  }
}

export function asObject(value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw wrong(`its ${what} is not an object`);
  }
  return value as Record<string, unknown>;
}

export function asList(value: unknown, what: string): unknown[] {
  if (!Array.isArray(value)) throw wrong(`its ${what} is not a list`);
  return value;
}

/** The digits of a `sha256:` digest; no other kind is taken. */
export function digestOf(value: unknown, what: string): string {
  const digits = typeof value === "string" ? /^sha256:([0-9a-f]{64})$/.exec(value)?.[1] : undefined;
  if (digits === undefined) throw wrong(`its ${what} has no SHA-256 digest`);
  return digits;
}

/** The configuration, and the digests that the layers' content must have. */
export function readConfig(bytes: Uint8Array): { config: ImageConfig; diffIds: string[] } {
  const whole = parseObject(bytes, "configuration");
  const rootfs = asObject(whole.rootfs, "list of layers");
  const diffIds = asList(rootfs.diff_ids, "list of layers").map((id) => digestOf(id, "list of layers"));
  if (diffIds.length > maxLayers) throw wrong(`it has more than ${maxLayers} layers`);
  if (whole.os !== undefined && whole.os !== "linux") throw wrong("it is not for Linux");
  const config = asObject(whole.config ?? {}, "configuration");
  return {
    diffIds,
    config: {
      architecture: text(whole.architecture),
      env: variables(words(config.Env)),
      workdir: text(config.WorkingDir),
      user: text(config.User),
      entrypoint: words(config.Entrypoint),
      command: words(config.Cmd),
    },
  };
}

function text(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value !== "string" || Buffer.byteLength(value) > maxTextBytes || value.includes("\0")) {
    throw wrong("its configuration has a text that is none, or is too long");
  }
  return value;
}

function words(value: unknown): string[] {
  if (value === undefined || value === null) return [];
  const list = asList(value, "configuration").map(text);
  if (list.length > maxWords) throw wrong("its configuration is too long");
  return list;
}

function variables(list: string[]): Record<string, string> {
  const env: Record<string, string> = {};
  for (const variable of list) {
    const equals = variable.indexOf("=");
    if (equals > 0 && /^[A-Za-z_][A-Za-z0-9_.]*$/.test(variable.slice(0, equals)))
      env[variable.slice(0, equals)] = variable.slice(equals + 1);
  }
  return env;
}
