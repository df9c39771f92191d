// Wires everything. What is not needed to serve the first call is loaded afterwards.
import { mkdirSync, rmSync } from "node:fs";
import { getCompileCacheDir } from "node:module";
import { isIPv6 } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";
import { createApi, createKeys } from "@caisson/api";
import { CaissonError, Scope } from "@caisson/contract";
import { openSandboxes } from "@caisson/sandbox";
import { lockDirectory, openSqliteStore, type Store } from "@caisson/store";
import { approvalSettings } from "./config/approvals.ts";
import { Config } from "./config/config.ts";
import { jwtOptions } from "./config/jwt.ts";
import { completeSpec } from "./config/police.ts";
import { Trust } from "./config/trust.ts";
import { install } from "./install.ts";
import { type Level, log, setLevel } from "./log.ts";
import { approvalsFile, dataDirectory, machinePolicyFile, userConfigFile } from "./paths.ts";
import { Renewal } from "./renewal/renewal.ts";
import { Sources } from "./renewal/sources.ts";
import { systemInfo } from "./system-info.ts";
import { followEvents } from "./telemetry/events.ts";
import { type BeginSpan, instrument } from "./telemetry/instrument.ts";
import { Metrics } from "./telemetry/metrics.ts";
import { daemonControl } from "./terminal/control.ts";
import { openTerminal } from "./terminal/index.ts";

export interface Daemon {
  /** Stops serving, lets go of every sandbox without ending it, and frees the data directory. */
  stop(): Promise<void>;
}

/** The exit code when another daemon has the data directory; launchers then wait for that one. */
const directoryInUse = 75;

/** Until a stop that hangs is cut short. What is just being launched is waited for, and on a busy machine that takes a while. */
const stopWithinMs = 25_000;

export async function runDaemon(): Promise<void> {
  let daemon: Daemon;
  let stopping = false;
  let afterwards = () => {};
  const stopThen = (next: () => void) => {
    // Whoever was told that this process goes waits for that, whatever it was about to become.
    if (!stopping || next !== becomeAnother) afterwards = next;
    if (stopping) return;
    stopping = true;
    setTimeout(() => process.exit(1), stopWithinMs).unref();
    daemon.stop().then(
      () => afterwards(),
      (error) => {
        log("error", "the daemon did not stop in order", { error });
        process.exit(1);
      },
    );
  };
  try {
    daemon = await startDaemon(() => stopThen(becomeAnother));
  } catch (thrown) {
    const error = CaissonError.from(thrown);
    log("error", `the daemon cannot start: ${error.message}`, { code: error.code, error: thrown });
    process.stderr.write(`caisson: ${error.message}\n         ${error.nextStep}\n`);
    process.exit(error.metadata.pid === undefined ? 1 : directoryInUse);
  }
  for (const signal of ["SIGTERM", "SIGINT"] as const)
    process.on(signal, () => stopThen(() => process.exit(0)));
  process.on("SIGHUP", () => {});
  process.on("uncaughtException", (error) => log("error", "an error was not caught", { error }));
  process.on("unhandledRejection", (error) => log("error", "a rejection was not handled", { error }));
}

/** The same process, so that whoever looks after it notices nothing, with the sources as they are now. */
function becomeAnother(): void {
  const { execPath, execArgv, argv, env } = process;
  const compiled = { NODE_COMPILE_CACHE: getCompileCacheDir() ?? "" };
  process.execve!(execPath, [execPath, ...execArgv, ...argv.slice(1)], { ...env, ...compiled });
}

/** `renew` is called when this daemon should give way to one of newer sources. */
export async function startDaemon(renew: () => void = () => {}): Promise<Daemon> {
  const home = dataDirectory();
  const socket = join(home, "run/daemon.sock");
  makeDirectories(home);
  const config = await Config.load({
    userFile: userConfigFile(),
    policyFile: machinePolicyFile,
    env: process.env,
  });
  setLevel(config.text("log.level") as Level);
  const network = networkOptions(config);
  const address = tcpAddress(config);
  const lock = lockDirectory(join(home, "run/daemon.lock"));
  const store = await openSqliteStore({
    file: join(home, "log.db"),
    retention: { maxAgeMs: config.number("log.events_kept_days") * 86_400_000 },
  });
  const trust = new Trust(store);
  const { version, build, guest, sources } = install(home);
  const renewal = new Renewal({
    sources: new Sources(sources, performance.timeOrigin),
    enabled: config.flag("daemon.renew"),
    async rehearse() {
      const { rehearse } = await import("./renewal/rehearse.ts");
      const trouble = await rehearse();
      if (trouble) log("warn", "the sources have changed, but no daemon can be made of them", { trouble });
      return trouble;
    },
    renew() {
      log("info", "the sources have changed: starting again");
      renew();
    },
  });
  const listening: string[] = [];
  const troubles: string[] = [];
  const engine = await openSandboxes({
    home,
    guest,
    build,
    store,
    settings: engineSettings(config),
    complete: completeSpec(config, trust),
    ownPorts: () => listening.map((url) => Number(new URL(url).port)),
    surroundings: { path: process.env.PATH ?? "", home: process.env.HOME ?? homedir() },
    pool: { min: config.number("pool.min"), max: config.number("pool.max") },
    dockerHost: config.text("docker.host"),
    microvm: {
      store: config.text("microvm.store"),
      memoryBytes: config.number("microvm.memory_mb") * 1024 * 1024,
      programs: config.text("microvm.programs"),
    },
    log,
  });
  const metrics = daemonMetrics(store);
  const telemetry = await openTelemetry(metrics, version);
  const stopEvents = followEvents(store, metrics);
  const control = daemonControl({ home, socket, version, build, listening });
  const terminal = openTerminal(control, build, renewal);
  const api = createApi({
    engine,
    store,
    keys: createKeys(store),
    system: systemInfo({ version, build, engine, store, config, trust, renewal, troubles }),
    log,
    wrap: (made) => instrument(made, metrics, telemetry?.beginSpan, (method) => renewal.beginCall(method)),
    ownerServices: [terminal.service],
    pages: {
      "/metrics": { scope: Scope.READ, contentType: "text/plain; version=0.0.4", body: () => metrics.text() },
      "/healthz": { scope: Scope.PUBLIC, contentType: "text/plain", body: () => "ok\n" },
    },
    network,
  });
  rmSync(socket, { force: true });
  await api.listenUnix(socket);
  log("info", "ready", { socket, version, build, ms: Math.round(performance.now()) });
  // A launcher that comes before the command line is loaded waits for it; nobody else does.
  terminal.serve(api.services);
  if (address) void listenOnTcp(api, address, config.isDefault("listen.tcp"), { listening, troubles });
  void renewal.watch();
  return {
    async stop() {
      log("info", "stopping");
      stopEvents();
      renewal.close();
      await api.close();
      await engine.close();
      await telemetry?.close();
      await store.close();
      rmSync(socket, { force: true });
      lock.release();
    },
  };
}

/** The socket's directory is the owner's alone; so is everything else but the way to the guest binary. */
function makeDirectories(home: string): void {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  for (const name of ["run", "sandboxes"]) mkdirSync(join(home, name), { recursive: true, mode: 0o700 });
}

function daemonMetrics(store: Store): Metrics {
  const metrics = new Metrics();
  metrics.gauge("caisson_log_events", () => store.head);
  metrics.gauge("caisson_memory_bytes", () => process.memoryUsage.rss());
  return metrics;
}

async function openTelemetry(
  metrics: Metrics,
  version: string,
): Promise<{ beginSpan: BeginSpan; close(): Promise<void> } | undefined> {
  if (!process.env.OTEL_EXPORTER_OTLP_ENDPOINT) return undefined;
  const { openTelemetry: open } = await import("./telemetry/open-telemetry.ts");
  return open(metrics, version);
}

function engineSettings(config: Config) {
  return {
    profiles: config.table("profiles"),
    agents: config.table("agents"),
    secrets: config.table("secrets"),
    extraCa: config.text("network.extra_ca"),
    approvals: approvalSettings(config, approvalsFile()),
    network: { bounds: config.policy?.network ?? {}, dnsServers: config.list("network.dns_servers") },
    admission: {
      sandboxes: config.number("admission.sandboxes"),
      memoryPercent: config.number("admission.memory_percent"),
      cpuPercent: config.number("admission.cpu_percent"),
      queue: config.number("admission.queue"),
    },
  };
}

function networkOptions(config: Config) {
  return {
    allowedHosts: config.list("listen.allowed_hosts"),
    allowedOrigins: config.list("listen.allowed_origins"),
    requestsPerSecond: config.number("listen.requests_per_second"),
    jwt: jwtOptions(config),
  };
}

interface Address {
  host: string;
  port: number;
}

/** Where to listen beside the socket, if anywhere. */
function tcpAddress(config: Config): Address | undefined {
  const text = config.text("listen.tcp");
  if (text === "off") return undefined;
  const [, host, port] = /^\[?(.+?)\]?:(\d{1,5})$/.exec(text) ?? [];
  if (host === undefined || Number(port) > 65_535) {
    const message = `listen.tcp must be \`off\` or an address with a port, such as 127.0.0.1:7676, not ${text}`;
    throw new CaissonError("CONFIG_INVALID", message);
  }
  return { host, port: Number(port) };
}

/** After the socket serves: nobody waits for this. */
async function listenOnTcp(
  api: ReturnType<typeof createApi>,
  { host, port }: Address,
  mayChoose: boolean,
  { listening, troubles }: { listening: string[]; troubles: string[] },
): Promise<void> {
  const listen = async (number: number) => {
    const taken = await api.listenTcp(host, number);
    listening.push(`http://${isIPv6(host) ? `[${host}]` : host}:${taken}`);
    log("info", "listening", { address: listening.at(-1) });
  };
  const fail = (error: unknown) => {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === "EADDRINUSE" ? "another program has the port" : (code ?? String(error));
    troubles.push(`the daemon does not listen on ${host}:${port}, as listen.tcp says: ${why}`);
    log("error", `cannot listen on ${host}:${port}`, { error });
  };
  try {
    await listen(port);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE" && mayChoose) await listen(0).catch(fail);
    else fail(error);
  }
}
