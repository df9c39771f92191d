import type { Look } from "./look.ts";

/** Whose toolchains: what his shell goes by. */
export interface Developer {
  /** His home directory, absolute. */
  home: string;
  /** His PATH, in order. */
  path: readonly string[];
}

/** A toolchain as a sandbox gets it. Names and contents of anything else in the home directory stay outside. */
export interface Toolchain {
  /**
   * Directories, and single files where there is no directory of programs alone, that are shown read-only
   * at their own paths. Only what holds programs and libraries: never a directory that tools also keep
   * their configuration, tokens or caches in.
   */
  binds: string[];
  /** Configuration that some people keep inside of those all the same; nothing inside can read it. */
  covers: string[];
  /** Variables that say where it is, and where it may write instead of beside itself. */
  env: Record<string, string>;
  /** What each entry of the PATH that belongs to it becomes inside. */
  path: ReadonlyMap<string, readonly string[]>;
}

/** One kind of toolchain. */
export interface ToolchainRule {
  /** As the enforcement report names it. */
  readonly name: string;
  /** What the developer's PATH uses of it; undefined if nothing. */
  detect(developer: Developer, look: Look): Toolchain | undefined;
}
