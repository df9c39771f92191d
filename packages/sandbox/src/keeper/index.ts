export { connectSocket } from "./connect.ts";
export {
  type AttachInit,
  Keeper,
  type Kept,
  type LaunchInit,
  launchedProcess,
  type OuterProcess,
} from "./keeper.ts";
