export {
  type Applied,
  type AppliedInit,
  applyChanges,
  type ChangeInit,
  copyProject,
  type Layer,
  listChanges,
  recoverApply,
  undoApply,
} from "./changes.ts";
