export { type Injection, injections, parseDefinitions, type SecretDefinition } from "./definition.ts";
export { type DefinedSecret, Secrets } from "./secrets.ts";
