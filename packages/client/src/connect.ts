import type { Transport } from "@caisson/contract";
import type { Client } from "./client.ts";

export interface ConnectionOptions {
  /** A daemon on the network, such as `http://127.0.0.1:7676`. Default: CAISSON_URL, else the Unix socket. */
  url?: string | undefined;
  /** A key made by `caisson keys create`, for `url`. Default: CAISSON_KEY. */
  key?: string | undefined;
  /** Path of a daemon's Unix socket. Default: that of this user's daemon. */
  socket?: string | undefined;
  /** A transport of one's own, such as services in the same process. */
  transport?: Transport | undefined;
  /** False where nothing lies between caller and server. Default: true. */
  retry?: boolean | undefined;
  /** W3C trace context for calls that bring none of their own. */
  traceparent?: (() => string | undefined) | undefined;
}

/** A client for a daemon. What it takes to make calls is loaded here, so that importing the SDK costs little. */
export async function connect(options: ConnectionOptions = {}): Promise<Client> {
  const { retry, traceparent } = options;
  const [contract, { Client }, transport] = await Promise.all([
    import("@caisson/contract"),
    import("./client.ts"),
    openTransport(options),
  ]);
  return new Client({ contract, transport, retry, traceparent });
}

async function openTransport(options: ConnectionOptions): Promise<Transport> {
  if (options.transport) return options.transport;
  const env: Record<string, string | undefined> = typeof process === "undefined" ? {} : process.env;
  const url = options.url ?? (options.socket ? undefined : env.CAISSON_URL);
  if (url) {
    const { ConnectTransport } = await import("./transports/connect.ts");
    return new ConnectTransport({ url, key: options.key ?? env.CAISSON_KEY });
  }
  const [{ TtrpcTransport }, { defaultSocketPath }] = await Promise.all([
    import("./transports/ttrpc.ts"),
    import("./transports/socket-path.ts"),
  ]);
  return new TtrpcTransport({ socket: options.socket ?? defaultSocketPath() });
}
