export { defaultLimits, type EgressLimits } from "./limits.ts";
export {
  isNetworkMode,
  type NetworkBounds,
  type NetworkMode,
  networkModes,
  Policy,
} from "./policy.ts";
export { covers, parseRule } from "./rules.ts";
export type { Answer, Ask, AskRequest, Interceptor, JudgedTarget, Report } from "./seams.ts";
