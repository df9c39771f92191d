export { type DirectoryLock, lockDirectory } from "./lock/index.ts";
export { canonicalJson } from "./sqlite/chain.ts";
export { openSqliteStore, type SqliteStoreOptions } from "./sqlite/index.ts";
export type { EventQuery, NewEvent, StateChange, Store, StoredEvent, Verification } from "./store.ts";
