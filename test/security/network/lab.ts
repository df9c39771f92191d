// A daemon, a small internet and one sandbox that may reach `allowed.test` and `*.below.test` in it, for each account.
import { after, before, describe } from "node:test";
import { type Box, type Client, connect, type Network } from "@caisson/client";
import { type Account, accounts, startDaemon, type TestDaemon } from "../../support/daemon.ts";
import { eventually } from "../../support/eventually.ts";
import { makeWorld, outside, type World } from "../../support/network/world.ts";

export const proxy = "http://127.0.0.1:14128";

export const usual = ["allowed.test", "*.below.test", outside];
const hosts = ["allowed.test", "a.below.test", "below.test", "denied.test", "other.test"];

export class Lab {
  readonly account: Account;
  world!: World;
  daemon!: TestDaemon;
  client!: Client;
  box!: Box;

  constructor(account: Account) {
    this.account = account;
  }

  async start(): Promise<void> {
    this.world = await makeWorld(hosts);
    const env = { CAISSON_NETWORK_DNS_SERVERS: this.world.names.address, CAISSON_LISTEN_TCP: "127.0.0.1:0" };
    this.daemon = await startDaemon({ account: this.account, env });
    this.client = await connect({ socket: this.daemon.socket });
    this.box = await this.make({ allow: usual });
    await this.box.files.write("/tmp/ca.pem", this.world.certificate.authority);
  }

  make(network: Network): Promise<Box> {
    return this.client.create({ network });
  }

  async stop(): Promise<void> {
    await this.client?.close();
    await this.daemon?.[Symbol.asyncDispose]();
    await this.world?.[Symbol.asyncDispose]();
  }

  /** What a shell script prints, both streams, and its exit code. */
  async sh(script: string, box = this.box): Promise<string> {
    const { stdout, stderr, code } = await box.run(["sh", "-c", script], { timeout: 60_000 });
    return `${stdout.text}${stderr.text}\nexit ${code}`;
  }

  python(script: string, box = this.box): Promise<string> {
    return box
      .run(["/usr/bin/python3", "-c", `${helpers}\n${script}`], { timeout: 60_000 })
      .then(({ stdout, stderr }) => stdout.text + stderr.text);
  }

  /** The rules by which a sandbox was refused this name; decisions are written a moment after they are made. */
  refusals(target: string, box = this.box, expected = 1): Promise<string[]> {
    const look = async () => {
      const rules = new Set<string>();
      for await (const { rule, name } of box.network.decisions({ refusedOnly: true }))
        if (name === target) rules.add(rule);
      return [...rules].sort();
    };
    return eventually(look, (rules) => rules.length >= expected);
  }
}

/** What attackers use inside. */
const helpers = `
import socket, ssl, struct, sys
def raw(data, port=14128, host="127.0.0.1", wait=5):
    s = socket.create_connection((host, port), timeout=wait)
    s.sendall(data if isinstance(data, bytes) else data.encode("latin1"))
    out = b""
    try:
        while True:
            got = s.recv(65536)
            if not got: break
            out += got
            if b"\\r\\n\\r\\n" in out and b"HTTP/1.1 200" in out and len(out) > 60: break
    except (TimeoutError, ConnectionError): pass
    return out.decode("latin1")
def status(data, **more): print(raw(data, **more).split("\\r\\n")[0][:200])
def socks(kind, address, port):
    s = socket.create_connection(("127.0.0.1", 14128), timeout=5)
    s.sendall(b"\\x05\\x01\\x00"); s.recv(2)
    s.sendall(b"\\x05\\x01\\x00" + bytes([kind]) + address + struct.pack(">H", port))
    print("socks", (s.recv(10) + b"\\xff\\xff")[1])
def name(text): return bytes([len(text)]) + text
`;

/** The same tests as root and as an ordinary user. */
export function eachAccount(title: string, define: (lab: Lab) => void): void {
  for (const account of accounts()) {
    describe(`${title}, as ${account.name}`, () => {
      const lab = new Lab(account);
      before(() => lab.start());
      after(() => lab.stop());
      define(lab);
    });
  }
}
