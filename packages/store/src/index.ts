export { type DirectoryLock, lockDirectory } from "./lock/index.ts";
export { canonicalJson } from "./sqlite/chain.ts";
export { openSqliteStore, type SqliteStoreOptions } from "./sqlite/index.ts";
export {
  type EventQuery,
  type NewEvent,
  type StateChange,
  type Store,
  type StoredEvent,
  soonMs,
  type Verification,
} from "./store.ts";
