export { Toolchains } from "./cache.ts";
export { canMapOwners } from "./file-systems.ts";
export { findToolchains, type ToolchainSet } from "./find.ts";
export type { Developer, Toolchain, ToolchainRule } from "./toolchain.ts";
