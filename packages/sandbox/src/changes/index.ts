export {
  type Applied,
  type AppliedInit,
  applyChanges,
  type ChangeInit,
  type Layer,
  listChanges,
  recoverApply,
  undoApply,
} from "./changes.ts";
