import { create } from "@bufbuild/protobuf";
import { CaissonError, type Limits, LimitsSchema } from "@caisson/contract";

/** Bounds as plain numbers; 0 stands for none. */
export interface LimitValues {
  /** Processors, in thousandths. */
  cpuMillis: number;
  memoryBytes: number;
  /** Processes and threads. */
  pids: number;
  /** In each private writable mount, and in what is written to the project. */
  diskBytes: number;
  /** Per process. */
  openFiles: number;
  /** Kept output per process. */
  outputBytes: number;
  /** Wall time per command. */
  timeoutMs: number;
}

export type LimitName = keyof LimitValues;

export const noLimits: LimitValues = {
  cpuMillis: 0,
  memoryBytes: 0,
  pids: 0,
  diskBytes: 0,
  openFiles: 0,
  outputBytes: 0,
  timeoutMs: 0,
};

/** In the order of the contract, with each one's name in the enforcement report. */
export const limitNames: readonly { key: LimitName; mechanism: string }[] = [
  { key: "cpuMillis", mechanism: "limit.cpu" },
  { key: "memoryBytes", mechanism: "limit.memory" },
  { key: "pids", mechanism: "limit.pids" },
  { key: "diskBytes", mechanism: "limit.disk" },
  { key: "openFiles", mechanism: "limit.open_files" },
  { key: "outputBytes", mechanism: "limit.output" },
  { key: "timeoutMs", mechanism: "limit.timeout" },
];

/** What is below these stops every program, so it is refused with a clear word. */
const least: LimitValues = {
  cpuMillis: 10,
  memoryBytes: 4 * 1024 * 1024,
  pids: 4,
  diskBytes: 64 * 1024,
  openFiles: 16,
  outputBytes: 4096,
  timeoutMs: 1,
};

/** What a request names, as plain numbers; what it does not name is 0. */
export function requestedLimits(limits: Partial<Limits> | undefined): LimitValues {
  const values: LimitValues = {
    cpuMillis: limits?.cpuMillis ?? 0,
    memoryBytes: toNumber(limits?.memoryBytes, "memory_bytes"),
    pids: limits?.pids ?? 0,
    diskBytes: toNumber(limits?.diskBytes, "disk_bytes"),
    openFiles: limits?.openFiles ?? 0,
    outputBytes: toNumber(limits?.outputBytes, "output_bytes"),
    timeoutMs: limits?.timeoutMs ?? 0,
  };
  for (const { key, mechanism } of limitNames) {
    if (values[key] !== 0 && values[key] < least[key]) {
      throw new CaissonError("INVALID_INPUT", `${mechanism} must be at least ${least[key]}`);
    }
  }
  return values;
}

/** A request's values where it names any, the profile's elsewhere. */
export function mergeLimits(requested: LimitValues, profile: LimitValues): LimitValues {
  const merged = { ...profile };
  for (const { key } of limitNames) if (requested[key] !== 0) merged[key] = requested[key];
  return merged;
}

/** Do control groups bound the same? */
export function sameBounds(a: LimitValues, b: LimitValues): boolean {
  return a.memoryBytes === b.memoryBytes && a.pids === b.pids && a.cpuMillis === b.cpuMillis;
}

export function toLimits(values: LimitValues): Limits {
  return create(LimitsSchema, {
    ...values,
    memoryBytes: BigInt(values.memoryBytes),
    diskBytes: BigInt(values.diskBytes),
    outputBytes: BigInt(values.outputBytes),
  });
}

function toNumber(value: bigint | undefined, field: string): number {
  if (value === undefined) return 0;
  if (value > BigInt(Number.MAX_SAFE_INTEGER))
    throw new CaissonError("INVALID_INPUT", `limits.${field} is too large`);
  return Number(value);
}
