import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CommandSchema, Exit as ExitMessage, Process as ProcessMessage } from "@caisson/contract";
import { type Enforcement, enforcementFrom } from "./enforcement.ts";
import { toDate, toNumber } from "./numbers.ts";

export interface TerminalOptions {
  /** Default: 80. */
  columns?: number | undefined;
  /** Default: 24. */
  rows?: number | undefined;
  /** The value of TERM. Default: xterm-256color. */
  term?: string | undefined;
}

/** How a command is run. */
export interface CommandOptions {
  /** Default: the sandbox's working directory. */
  cwd?: string | undefined;
  env?: Record<string, string> | undefined;
  /** Wall time in milliseconds, then SIGTERM to the whole tree. Default: the sandbox's limit. */
  timeout?: number | undefined;
  /** Milliseconds between SIGTERM and SIGKILL. Default: 2000. */
  grace?: number | undefined;
  /** `agent` (default) or `root`, a root without any capability. */
  user?: string | undefined;
  /** Give it a terminal; stdout and stderr are then one stream. */
  terminal?: TerminalOptions | true | undefined;
  /** Keep directory, variables, functions and options of the shell between commands that set it. */
  shellState?: boolean | undefined;
}

export interface Usage {
  userMs: number;
  systemMs: number;
  maxRssBytes: number;
}

/** How a command ended. A non-zero code is a value, not an error. */
export interface Exit {
  code: number;
  /** The signal's name, such as `SIGKILL`, or empty. */
  signal: string;
  timedOut: boolean;
  oomKilled: boolean;
  diskExceeded: boolean;
  /** Of a run that has its sandbox to itself: it may have changed the project, and `workspace.diff` tells what. */
  projectTouched: boolean;
  truncated: boolean;
  durationMs: number;
  usage: Usage;
  enforced: Enforcement | undefined;
  /** Why there is no exit code of its own, or empty. */
  lost: string;
}

export interface Process {
  id: string;
  sandboxId: string;
  argv: string[];
  cwd: string;
  startedAt: Date | undefined;
  endedAt: Date | undefined;
  exit: Exit | undefined;
  hasTerminal: boolean;
  /** Output bytes so far, and the first that is still kept. */
  seq: number;
  firstKeptSeq: number;
}

export function commandInit(
  argv: string[],
  options: CommandOptions,
  stdin: { bytes?: Uint8Array | undefined; keep: boolean },
): MessageInitShape<typeof CommandSchema> {
  const init: MessageInitShape<typeof CommandSchema> = { argv };
  if (options.cwd) init.cwd = options.cwd;
  if (options.env) init.env = options.env;
  if (stdin.bytes) init.stdin = stdin.bytes as Uint8Array<ArrayBuffer>;
  if (stdin.keep) init.keepStdin = true;
  if (options.terminal) init.terminal = terminalInit(options.terminal);
  if (options.timeout) init.timeoutMs = Math.ceil(options.timeout);
  if (options.grace) init.graceMs = Math.ceil(options.grace);
  if (options.user) init.user = options.user;
  if (options.shellState) init.shellState = true;
  return init;
}

function terminalInit(terminal: TerminalOptions | true) {
  if (terminal === true) return {};
  return { columns: terminal.columns ?? 0, rows: terminal.rows ?? 0, term: terminal.term ?? "" };
}

export function exitFrom(message: ExitMessage): Exit {
  const { usage } = message;
  return {
    code: message.code,
    signal: message.signal,
    timedOut: message.timedOut,
    oomKilled: message.oomKilled,
    diskExceeded: message.diskExceeded,
    projectTouched: message.projectTouched,
    truncated: message.truncated,
    durationMs: message.durationMs,
    usage: {
      userMs: usage?.userMs ?? 0,
      systemMs: usage?.systemMs ?? 0,
      maxRssBytes: usage ? toNumber(usage.maxRssBytes) : 0,
    },
    // Made when somebody looks at it.
    get enforced() {
      return enforcementFrom(message.enforced);
    },
    lost: message.lost,
  };
}

export function processFrom(message: ProcessMessage): Process {
  return {
    id: message.id,
    sandboxId: message.sandboxId,
    argv: message.argv,
    cwd: message.cwd,
    startedAt: toDate(message.startedAt),
    endedAt: toDate(message.endedAt),
    exit: message.exit && exitFrom(message.exit),
    hasTerminal: message.hasTerminal,
    seq: toNumber(message.seq),
    firstKeptSeq: toNumber(message.firstKeptSeq),
  };
}
