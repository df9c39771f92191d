import type { Timestamp } from "@bufbuild/protobuf/wkt";

/** Every count and number of the contract stays far below 2^53. */
export function toNumber(value: bigint): number {
  return Number(value);
}

export function toDate(at: Timestamp | undefined): Date | undefined {
  return at && new Date(Number(at.seconds) * 1000 + at.nanos / 1e6);
}

/** Milliseconds of the surface as whole seconds of the contract; what is shorter than one counts as one. */
export function toSeconds(milliseconds: number | undefined): number {
  return milliseconds === undefined ? 0 : Math.ceil(milliseconds / 1000);
}

/** The name that stands for an enum's number; numbers of a newer server are told as such. */
export function enumName<T extends string>(names: readonly T[], value: number): T {
  return names[value] ?? (`unknown(${value})` as T);
}
