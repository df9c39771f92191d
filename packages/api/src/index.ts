export { type Api, type ApiOptions, createApi } from "./api.ts";
export type { JwtOptions } from "./auth/jwt.ts";
export { createKeys, type KeyRecord, type Keys } from "./auth/keys.ts";
export { checkKeysAddress } from "./auth/remote-keys.ts";
export type { Log, SystemInfo } from "./deps.ts";
export type { Page } from "./faces/http/pages.ts";
