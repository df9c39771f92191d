export {
  type ForwardRecord,
  Forwards,
  newForwardId,
  newToken,
  type OpenForward,
  toForward,
} from "./forwards.ts";
export { waitForPort } from "./wait.ts";
