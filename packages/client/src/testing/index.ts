// A daemon in memory and a socket to reach it, for tests of what talks to a daemon.
export { inProcessClient, type SocketClient, socketClient } from "./clients.ts";
export { FakeFiles } from "./files.ts";
export { FakeProcess } from "./process.ts";
export { FakeDaemon } from "./services.ts";
export { TtrpcPeer } from "./ttrpc-peer.ts";
