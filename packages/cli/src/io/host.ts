/** The daemon in whose process the command line runs. */
export interface DaemonControl {
  status(): DaemonStatus;
  /** Begins a graceful stop once this command line has been answered. Sandboxes live on. */
  stop(): void;
  /** The same, and the launcher starts a new one; rejects, and stays, where none could be started. */
  restart(): Promise<void>;
  /** The log's last lines, then what comes, if asked for. */
  logs(options: { lines: number; follow: boolean; signal: AbortSignal }): AsyncIterable<Uint8Array>;
}

export interface DaemonStatus {
  pid: number;
  version: string;
  build: string;
  startedAt: Date;
  dataDirectory: string;
  socket: string;
  /** Addresses on the network. */
  listening: string[];
}

/** What surrounds the command line, beside the caller. */
export interface Host {
  /** Absent where the command line runs in a process of its own. */
  readonly daemon?: DaemonControl | undefined;
  /** The caller's directories are the daemon's too, so that a project can be attached by its path. */
  readonly sharesFiles: boolean;
  /** The API's description as OpenAPI 3.1. */
  openapi(): Promise<string>;
}
