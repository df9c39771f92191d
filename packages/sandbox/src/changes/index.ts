export {
  type Applied,
  type AppliedInit,
  applyChanges,
  type ChangeInit,
  type CopiedLayer,
  copyProject,
  type Layer,
  type ListOptions,
  listChanges,
  packLayer,
  recoverApply,
  undoApply,
  unpackLayer,
} from "./changes.ts";
export { type ExportOptions, exportChanges } from "./export.ts";
export { rebaseChanges } from "./rebase.ts";
export { findSockets } from "./sockets.ts";
