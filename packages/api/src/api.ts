import type { Server, Socket } from "node:net";
import type { ServedService } from "@caisson/contract";
import { ownerIdentity } from "./auth/identity.ts";
import type { JwtOptions } from "./auth/jwt.ts";
import { onlyOwn } from "./auth/ownership.ts";
import type { Gate } from "./faces/http/gate.ts";
import type { HttpHandler } from "./faces/http/handler.ts";
import type { Page } from "./faces/http/pages.ts";
import type { HttpServers } from "./faces/http/server.ts";
import { createRoutes } from "./faces/routes.ts";
import { createListener, listenOnPath, listenOnPort } from "./faces/socket/listener.ts";
import { TtrpcConnection } from "./faces/ttrpc/connection.ts";
import { createServices, type ServiceDeps } from "./services/index.ts";

export interface ApiOptions extends ServiceDeps {
  /** Served on the Unix socket by ttRPC alone; not part of the public contract. */
  ownerServices?: readonly ServedService[];
  /** Wraps the public services, for instance to measure them. */
  wrap?: (services: ServedService[]) => ServedService[];
  /** Further things to GET, by path. */
  pages?: Readonly<Record<string, Page>>;
  network?: NetworkOptions;
}

/** How callers over TCP are judged. */
export interface NetworkOptions {
  /** Names, beside loopback ones, that requests may be addressed to. Default: none. */
  allowedHosts?: readonly string[];
  /** Web origins that may call from a browser. Default: none. */
  allowedOrigins?: readonly string[];
  /** Calls per second and caller, twice that at once. Default: 200. */
  requestsPerSecond?: number;
  /** Connections at once; further ones are closed unanswered. Default: 4096. */
  maxConnections?: number;
  /** Whose tokens are accepted. Default: nobody's. */
  jwt?: JwtOptions | undefined;
}

export interface Api {
  /** The public services, as every face serves them. */
  readonly services: ServedService[];
  listenUnix(path: string): Promise<void>;
  /** Resolves to the port that was taken. */
  listenTcp(host: string, port: number): Promise<number>;
  /** Stops listening and cuts every connection; what the calls started goes on. */
  close(): Promise<void>;
}

/** Serves the contract on every face. HTTP is loaded when the first HTTP connection comes. */
export function createApi(options: ApiOptions): Api {
  const made = onlyOwn(createServices(options), options.engine);
  const services = options.wrap?.(made) ?? made;
  const { log } = options;
  const listeners: Server[] = [];
  const sockets = new Set<Socket>();
  const httpServers: HttpServers[] = [];
  let http: Promise<HttpHandler> | undefined;

  const httpFor = (makeGate: () => Promise<Gate>): (() => Promise<HttpServers>) => {
    let servers: Promise<HttpServers> | undefined;
    return () => {
      servers ??= Promise.all([makeGate(), import("./faces/http/server.ts"), loadHttp()]).then(
        ([gate, { createHttpServers }, handle]) => {
          const created = createHttpServers(gate, handle);
          httpServers.push(created);
          return created;
        },
      );
      return servers;
    };
  };

  const loadHttp = (): Promise<HttpHandler> => {
    http ??= import("./faces/http/handler.ts").then(({ createHttpHandler }) =>
      createHttpHandler({ services, pages: options.pages ?? {}, log }),
    );
    return http;
  };

  const track = (server: Server): Server => {
    listeners.push(server);
    server.on("connection", (socket: Socket) => {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
    });
    return server;
  };

  const handOver = (
    socket: Socket,
    version: "http1" | "http2",
    servers: () => Promise<HttpServers>,
  ): void => {
    servers().then(
      (ready) => ready[version](socket),
      (error) => {
        log("error", "HTTP cannot be served", { error });
        socket.destroy();
      },
    );
  };

  return {
    services,
    async listenUnix(path) {
      const owner = ownerIdentity(process.getuid?.() ?? 0);
      const routes = createRoutes([...services, ...(options.ownerServices ?? [])]);
      const servers = httpFor(async () => (await import("./faces/http/gate.ts")).ownerGate(owner));
      const listener = createListener({
        ttrpc: (socket, first) =>
          void new TtrpcConnection(socket, first, { routes, actor: owner.actor, log }),
        http1: (socket) => handOver(socket, "http1", servers),
        http2: (socket) => handOver(socket, "http2", servers),
      });
      await listenOnPath(track(listener), path);
    },
    async listenTcp(host, port) {
      const servers = httpFor(() => makeNetworkGate(options));
      const listener = createListener({
        http1: (socket) => handOver(socket, "http1", servers),
        http2: (socket) => handOver(socket, "http2", servers),
      });
      listener.maxConnections = options.network?.maxConnections ?? 4096;
      return await listenOnPort(track(listener), host, port);
    },
    async close() {
      for (const servers of httpServers) servers.close();
      const closed = listeners.map((server) => new Promise((resolve) => server.close(resolve)));
      for (const socket of sockets) socket.destroy();
      await Promise.all(closed);
    },
  };
}

async function makeNetworkGate({ keys, network = {} }: ApiOptions): Promise<Gate> {
  const [{ networkGate }, { createAuthenticator }] = await Promise.all([
    import("./faces/http/gate.ts"),
    import("./auth/authenticator.ts"),
  ]);
  return networkGate({
    authenticate: createAuthenticator(keys, network.jwt),
    allowedHosts: network.allowedHosts ?? [],
    allowedOrigins: network.allowedOrigins ?? [],
    requestsPerSecond: network.requestsPerSecond ?? 200,
  });
}
