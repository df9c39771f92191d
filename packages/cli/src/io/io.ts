/** Where output goes. A promise is returned when the reader is slow: await it before writing more. */
export interface Sink {
  readonly isTerminal: boolean;
  write(data: string | Uint8Array): Promise<void> | undefined;
}

export interface Size {
  columns: number;
  rows: number;
}

/** Everything outside that a command line may touch. One per invocation; nothing here blocks. */
export interface Io {
  readonly stdout: Sink;
  readonly stderr: Sink;
  readonly stdin: {
    readonly isTerminal: boolean;
    /** There is nothing to read, so that it is not worth asking. */
    readonly isEmpty: boolean;
    /** Standard input from here on; nothing is read before the first `next`. To be called once. */
    read(): AsyncIterable<Uint8Array>;
  };
  /** The caller's directory; empty when it is gone or its name is not UTF-8. */
  readonly cwd: string;
  /** Variables that are at hand: CAISSON_*, TERM, NO_COLOR, LANG, COLUMNS, HOME, PATH. */
  readonly env: Readonly<Record<string, string>>;
  /** Any of the caller's variables, those that are set. */
  askEnv(names: string[]): Promise<Record<string, string>>;
  /** A file of the caller's, read with the caller's rights. */
  readFile(path: string): AsyncIterable<Uint8Array>;
  /** The terminal's size, if there is a terminal. */
  readonly size: Size | undefined;
  /** Listens to the caller's signals, by name, until the returned function is called. */
  onSignal(listener: (signal: string) => void): () => void;
  onResize(listener: (size: Size) => void): () => void;
  /** Raw mode of the terminal, or back. */
  setRaw(raw: boolean): void;
  /** Aborted when the caller has vanished: what was started must end. */
  readonly gone: AbortSignal;
}
