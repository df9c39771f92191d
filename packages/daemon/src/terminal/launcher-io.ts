import { constants } from "node:os";
import { getSystemErrorMessage } from "node:util";
import type { Io, Sink, Size } from "@caisson/cli";
import { CaissonError } from "@caisson/contract";
import type { InvokeRequest, Open } from "@caisson/contract/terminal";
import { Inlet } from "./inlet.ts";
import type { Outbox } from "./outbox.ts";

const stdinBounds = { high: 512 * 1024, low: 128 * 1024 };
const fileBounds = { high: 1024 * 1024, low: 256 * 1024 };
const pieceBytes = 1024 * 1024;
const encoder = new TextEncoder();

const signalNames = new Map<number, string>(
  Object.entries(constants.signals).map(([name, number]) => [number, name]),
);

/** A launcher's terminal, files, variables and signals, as the command line sees them. */
export class LauncherIo implements Io {
  readonly stdout: Sink;
  readonly stderr: Sink;
  readonly stdin: Io["stdin"];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly gone: AbortSignal;
  /** The exit code of a command line that was ended by a signal which nobody listened to. */
  readonly interrupted: Promise<number>;
  size: Size | undefined;
  #interrupt: (code: number) => void = () => {};
  readonly #outbox: Outbox;
  readonly #input: Inlet;
  readonly #files = new Map<number, Inlet>();
  readonly #signalListeners = new Set<(signal: string) => void>();
  readonly #sizeListeners = new Set<(size: Size) => void>();
  #nextId = 1;
  #stall: PromiseWithResolvers<void> | undefined;

  constructor(open: Open, outbox: Outbox, gone: AbortSignal) {
    this.#outbox = outbox;
    this.gone = gone;
    this.interrupted = new Promise((resolve) => {
      this.#interrupt = resolve;
    });
    this.cwd = decodeOr(open.cwd, "");
    this.env = Object.fromEntries(
      Object.entries(open.env).map(([name, value]) => [name, decodeOr(value, "")]),
    );
    this.size = open.size && { columns: open.size.columns, rows: open.size.rows };
    this.stdout = this.#sink("stdout", open.stdoutIsTerminal);
    this.stderr = this.#sink("stderr", open.stderrIsTerminal);
    this.#input = new Inlet({
      ...stdinBounds,
      full: () => outbox.send({ case: "wantStdin", value: false }),
      room: () => outbox.send({ case: "wantStdin", value: true }),
    });
    this.stdin = {
      isTerminal: open.stdinIsTerminal,
      isEmpty: open.stdinIsEmpty,
      read: () => {
        outbox.send({ case: "wantStdin", value: true });
        return this.#input;
      },
    };
  }

  /** Takes what the launcher says. A promise means: say no more until it is kept. */
  hear({ input }: InvokeRequest): Promise<void> | undefined {
    switch (input.case) {
      case "stdin":
        this.#input.push(input.value);
        return undefined;
      case "stdinEnd":
        this.#input.end();
        return undefined;
      case "signal": {
        const signal = signalNames.get(input.value);
        if (signal) for (const listener of [...this.#signalListeners]) listener(signal);
        if (this.#signalListeners.size === 0) this.#interrupt(128 + input.value);
        return undefined;
      }
      case "size":
        this.size = { columns: input.value.columns, rows: input.value.rows };
        for (const listener of [...this.#sizeListeners]) listener(this.size);
        return undefined;
      case "file":
        this.#fileContent(input.value);
        return this.#stall?.promise;
      default:
        throw new CaissonError("INVALID_INPUT", "the launcher sent something that does not belong here");
    }
  }

  /** The launcher will say no more. */
  close(): void {
    this.#input.end();
    const cut = new CaissonError("CANCELLED", "the caller has gone");
    for (const file of this.#files.values()) file.end(cut);
    this.#stall?.resolve();
  }

  async askEnv(names: string[]): Promise<Record<string, string>> {
    const id = this.#nextId++;
    const answer = this.#expect(id);
    this.#outbox.send({ case: "env", value: { id, names } });
    const pieces: Uint8Array[] = [];
    for await (const piece of answer) pieces.push(piece);
    const entries = decode(Buffer.concat(pieces), "one of these variables").split("\0").filter(Boolean);
    return Object.fromEntries(entries.map((entry) => splitOnce(entry)));
  }

  readFile(path: string): AsyncIterable<Uint8Array> {
    const id = this.#nextId++;
    const content = this.#expect(id);
    this.#outbox.send({ case: "readFile", value: { id, path: encoder.encode(path) } });
    return content;
  }

  onSignal(listener: (signal: string) => void): () => void {
    this.#signalListeners.add(listener);
    return () => void this.#signalListeners.delete(listener);
  }

  onResize(listener: (size: Size) => void): () => void {
    this.#sizeListeners.add(listener);
    return () => void this.#sizeListeners.delete(listener);
  }

  setRaw(raw: boolean): void {
    this.#outbox.send({ case: "raw", value: raw });
  }

  #sink(name: "stdout" | "stderr", isTerminal: boolean): Sink {
    return {
      isTerminal,
      write: (data) => {
        const value = typeof data === "string" ? encoder.encode(data) : (data as Uint8Array<ArrayBuffer>);
        if (value.length > pieceBytes) return this.#writePieces(name, value);
        return value.length === 0 ? undefined : this.#outbox.send({ case: name, value }, value.length);
      },
    };
  }

  /** A sandbox decides how long a listing is; a message is not longer than the protocol allows. */
  async #writePieces(name: "stdout" | "stderr", bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      const value = bytes.subarray(at, at + pieceBytes);
      await this.#outbox.send({ case: name, value }, value.length);
    }
  }

  #expect(id: number): Inlet {
    const inlet = new Inlet({
      ...fileBounds,
      full: () => {
        this.#stall ??= Promise.withResolvers();
      },
      room: () => {
        this.#stall?.resolve();
        this.#stall = undefined;
      },
    });
    this.#files.set(id, inlet);
    return inlet;
  }

  #fileContent({
    id,
    data,
    end,
    errno,
  }: {
    id: number;
    data: Uint8Array;
    end: boolean;
    errno: number;
  }): void {
    const file = this.#files.get(id);
    if (!file) return;
    if (data.length > 0) file.push(data);
    if (!end && errno === 0) return;
    this.#files.delete(id);
    file.end(errno === 0 ? undefined : new Error(getSystemErrorMessage(-errno)));
  }
}

function splitOnce(entry: string): [string, string] {
  const equals = entry.indexOf("=");
  return [entry.slice(0, equals), entry.slice(equals + 1)];
}

const strict = new TextDecoder("utf-8", { fatal: true });

/** Text of the caller's, which must be UTF-8 to mean the same everywhere. */
export function decode(bytes: Uint8Array, what: string): string {
  try {
    return strict.decode(bytes);
  } catch {
    throw new CaissonError("INVALID_INPUT", `${what} is not UTF-8`);
  }
}

/** Text that is not needed by every command: what is not UTF-8 counts as missing. */
function decodeOr(bytes: Uint8Array, missing: string): string {
  try {
    return strict.decode(bytes);
  } catch {
    return missing;
  }
}
