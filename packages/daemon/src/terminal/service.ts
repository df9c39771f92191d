import { type DaemonControl, type Host, main } from "@caisson/cli";
import { CaissonError, type CallContext } from "@caisson/contract";
import type { InvokeRequest, Open } from "@caisson/contract/terminal";
import type { Installation } from "../renewal/rehearse.ts";
import type { Renewal } from "../renewal/renewal.ts";
import type { Clients } from "./clients.ts";
import { decode, LauncherIo } from "./launcher-io.ts";
import type { Outbox } from "./outbox.ts";

export interface TerminalOptions {
  /** This daemon's build; a launcher of another one is told to start its own. */
  build: string;
  /** `restart` is made of `stop` and what the launcher does after it. */
  daemon: Omit<DaemonControl, "restart">;
  /** Says when this daemon is older than its sources, and counts what must not be cut. */
  renewal: Pick<Renewal, "due" | "begin" | "working">;
  /** What is wrong with the daemon that a launcher would start, if something is. */
  rehearse: (installation: Installation) => Promise<string | undefined>;
  /** The API's description as OpenAPI 3.1. */
  openapi: () => Promise<string>;
}

/** Runs command lines right here; each has an outbox to its launcher. */
export function invoker(clients: Pick<Clients, "for">, options: TerminalOptions) {
  return (requests: AsyncIterable<InvokeRequest>, call: CallContext, outbox: Outbox): void =>
    invoke(clients, options, { requests, call, outbox });
}

interface Conversation {
  requests: AsyncIterable<InvokeRequest>;
  call: CallContext;
  outbox: Outbox;
}

function invoke(
  clients: Pick<Clients, "for">,
  options: TerminalOptions,
  { requests, call, outbox }: Conversation,
): void {
  const stopAfterwards = () => outbox.whenDone(() => options.daemon.stop());
  void converse().catch((thrown) => {
    const { message } = CaissonError.from(thrown);
    outbox.send({ case: "stderr", value: new TextEncoder().encode(`caisson: ${message}\n`) });
    outbox.send({ case: "exit", value: 125 });
    outbox.end();
  });

  async function converse(): Promise<void> {
    const incoming = requests[Symbol.asyncIterator]();
    const open = await firstMessage(incoming);
    const foreign = open.build !== "" && options.build !== "" && open.build !== options.build;
    if (foreign || (await options.renewal.due())) {
      if (options.renewal.working === 0) {
        if (foreign)
          await checkNext(
            open,
            options,
            "this launcher is of another build than the daemon, which cannot be replaced by one of its own",
          );
        stopAfterwards();
        outbox.send({ case: "restart", value: true });
        return outbox.end();
      }
      if (open.stderrIsTerminal) outbox.send({ case: "stderr", value: new TextEncoder().encode(busyWords) });
    }
    const io = new LauncherIo(open, outbox, call.signal);
    outbox.whenDone(options.renewal.begin());
    const args = open.args.map((arg, index) => decode(arg, `argument ${index + 1}`));
    let restart = false;
    const daemon: DaemonControl = {
      status: () => options.daemon.status(),
      logs: (wanted) => options.daemon.logs(wanted),
      stop: stopAfterwards,
      restart: async () => {
        await checkNext(open, options, "the daemon is not restarted");
        restart = true;
        stopAfterwards();
      },
    };
    const host: Host = { daemon, sharesFiles: true, openapi: options.openapi };
    call.signal.addEventListener("abort", () => void outbox.return(), { once: true });
    void listen(incoming, io);
    const client = await clients.for(io.env);
    const code = await Promise.race([main(args, io, client, host), io.interrupted]);
    outbox.send(restart ? { case: "restart", value: true } : { case: "exit", value: code });
    outbox.end();
  }
}

/** Sooner than cutting what others are waiting for, an older daemon serves once more. */
const busyWords =
  "caisson: an older daemon is busy; it is replaced when its calls have ended (now: caisson daemon restart)\n";

/** Refuses to give way to a daemon that could not start: then there would be none. */
async function checkNext(open: Open, options: TerminalOptions, why: string): Promise<void> {
  const root = decode(open.root, "the installation's root");
  if (root === "") return;
  const env = Object.fromEntries(
    Object.entries(open.env).map(([name, value]) => [name, Buffer.from(value).toString()]),
  );
  const trouble = await options.rehearse({ root, env });
  if (trouble === undefined) return;
  throw new CaissonError(
    "UNAVAILABLE",
    `${why}: none can be made of the sources in ${root}: ${trouble}. The one that runs stays; mend the sources and repeat`,
  );
}

async function firstMessage(incoming: AsyncIterator<InvokeRequest>): Promise<Open> {
  const { done, value } = await incoming.next();
  if (done || value.input.case !== "open")
    throw new CaissonError("INVALID_INPUT", "the launcher did not say hello");
  return value.input.value;
}

/** Hears the launcher out. Its end is told by the call's signal, not here. */
async function listen(incoming: AsyncIterator<InvokeRequest>, io: LauncherIo): Promise<void> {
  try {
    for (;;) {
      const { done, value } = await incoming.next();
      if (done) break;
      await io.hear(value);
    }
  } catch {
    // The connection broke, or said nonsense.
  } finally {
    io.close();
  }
}
