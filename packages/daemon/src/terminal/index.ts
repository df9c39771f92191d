import type { DaemonControl } from "@caisson/cli";
import { type ServedService, type Surroundings, serve } from "@caisson/contract";
import { createInProcessTransport } from "@caisson/contract/in-process";
import { TerminalService } from "@caisson/contract/terminal";
import { log } from "../log.ts";
import type { Installation } from "../renewal/rehearse.ts";
import type { Renewal } from "../renewal/renewal.ts";
import { Clients } from "./clients.ts";
import { Outbox } from "./outbox.ts";

export interface Terminal {
  /** For the Unix socket alone. */
  readonly service: ServedService;
  /** Says what command lines call. */
  serve(services: readonly ServedService[]): void;
}

type Invoke = ReturnType<typeof import("./service.ts")["invoker"]>;

/** The command line's place in the daemon. It is loaded while the first launcher is on its way. */
export function openTerminal(
  daemon: Omit<DaemonControl, "restart">,
  build: string,
  renewal: Pick<Renewal, "due" | "begin" | "working">,
): Terminal {
  const { promise: invoke, resolve, reject } = Promise.withResolvers<Invoke>();
  invoke.catch((error) => log("error", "the command line cannot be loaded", { error }));
  let loaded: Invoke | undefined;
  const service = serve(TerminalService, {
    invoke: (requests, call) => {
      const outbox = new Outbox();
      if (loaded) loaded(requests, call, outbox);
      else
        invoke.then(
          (ready) => ready(requests, call, outbox),
          () => apologise(outbox),
        );
      return outbox;
    },
  });
  const load = async (services: readonly ServedService[]) => {
    const [{ invoker }, { connect }, cli] = await Promise.all([
      import("./service.ts"),
      import("@caisson/client"),
      import("@caisson/cli"),
    ]);
    let calls = 0;
    const open = (surroundings?: Surroundings, traceparent?: string) => {
      const transport = createInProcessTransport(services, {
        actor: `uid:${process.getuid?.() ?? 0}`,
        nextRequestId: () => `t${process.pid}-${++calls}`,
        ...(surroundings && { surroundings }),
      });
      return connect({ transport, retry: false, ...(traceparent && { traceparent: () => traceparent }) });
    };
    const clients = new Clients(open);
    await Promise.all([clients.for({}), cli.warm()]);
    loaded = invoker(clients, { build, daemon, renewal, rehearse, openapi });
    resolve(loaded);
  };
  return { service, serve: (services) => void load(services).catch(reject) };
}

function apologise(outbox: Outbox): void {
  const words = "caisson: the command line cannot be loaded; the daemon's log says why\n";
  outbox.send({ case: "stderr", value: new TextEncoder().encode(words) });
  outbox.send({ case: "exit", value: 125 });
  outbox.end();
}

async function rehearse(installation: Installation): Promise<string | undefined> {
  const { rehearse: tryOut } = await import("../renewal/rehearse.ts");
  return await tryOut(installation);
}

async function openapi(): Promise<string> {
  const { openapiDocument } = await import("@caisson/api/openapi");
  return JSON.stringify(openapiDocument(), null, 2);
}
