export {
  type Applied,
  type AppliedInit,
  applyChanges,
  type ChangeInit,
  type CopiedLayer,
  copyProject,
  type Layer,
  listChanges,
  packLayer,
  recoverApply,
  undoApply,
  unpackLayer,
} from "./changes.ts";
