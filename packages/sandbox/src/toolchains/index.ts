export { Toolchains } from "./cache.ts";
export { canMapOwners } from "./file-systems.ts";
export type { ToolchainSet } from "./find.ts";
export type { Developer, Toolchain, ToolchainRule } from "./toolchain.ts";
