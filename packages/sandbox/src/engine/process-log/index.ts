export { MemoryBudget } from "./memory.ts";
export type { Piece } from "./piece.ts";
export { type LogItem, ProcessLog, type ProcessLogOptions } from "./process-log.ts";
