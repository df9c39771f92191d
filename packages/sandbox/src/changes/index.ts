export {
  type Applied,
  applyChanges,
  type ChangeInit,
  type Layer,
  listChanges,
  recoverApply,
  undoApply,
} from "./changes.ts";
