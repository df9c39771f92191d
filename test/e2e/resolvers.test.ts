// Programs that know no proxy, each with a resolver of its own: the daemon hears the name that each of them meant.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { type Client, connect } from "@caisson/client";
import { startDaemon, type TestDaemon } from "../support/daemon.ts";
import { eventually } from "../support/eventually.ts";

const build = promisify(execFile);
const port = 8443;

const sources = {
  "dial.go": `package main
import ("fmt"; "net"; "os")
func main() {
  c, err := net.Dial("tcp", os.Args[1])
  if err == nil { _, err = c.Read(make([]byte, 1)) }
  fmt.Println(err)
}`,
  "dial.rs": `use std::{env, io::Read, net::TcpStream};
fn main() {
  let said = TcpStream::connect(env::args().nth(1).unwrap()).and_then(|mut c| c.read(&mut [0; 1]));
  println!("{said:?}");
}`,
  "Dial.java": `public class Dial {
  public static void main(String[] args) throws Exception {
    try (var socket = new java.net.Socket(args[0], ${port})) { System.out.println(socket.getInputStream().read()); }
    catch (java.io.IOException e) { System.out.println(e); }
  }
}`,
};

describe("programs that know no proxy", { timeout: 240_000 }, () => {
  let daemon: TestDaemon;
  let client: Client;
  let dir: string;
  before(async () => {
    dir = mkdtempSync(join(tmpdir(), "caisson-resolvers-"));
    for (const [name, text] of Object.entries(sources)) writeFileSync(join(dir, name), text);
    const rust = `${process.arch === "arm64" ? "aarch64" : "x86_64"}-unknown-linux-musl`;
    const go = {
      cwd: dir,
      env: { ...process.env, CGO_ENABLED: "0", GOFLAGS: "-mod=mod", GO111MODULE: "off" },
    };
    await Promise.all([
      build("go", ["build", "-o", "dial-go", "dial.go"], go),
      build("rustc", ["--target", rust, "-o", "dial-rs", "dial.rs"], { cwd: dir }),
      build("javac", ["-d", dir, "Dial.java"], { cwd: dir }),
    ]);
    daemon = await startDaemon();
    client = await connect({ socket: daemon.socket });
  });
  after(async () => {
    await client?.close();
    await daemon?.[Symbol.asyncDispose]();
    rmSync(dir, { recursive: true, force: true });
  });

  const programs: Record<string, (host: string) => string[]> = {
    "glibc.example": (host) => ["bash", "-c", `cat < /dev/tcp/${host}/${port}`],
    "curl.example": (host) => ["curl", "-sS", "--noproxy", "*", `https://${host}:${port}/`],
    "go.example": (host) => ["./dial-go", `${host}:${port}`],
    "musl.example": (host) => ["./dial-rs", `${host}:${port}`],
    "java.example": (host) => ["java", "-cp", ".", "Dial", host],
    "node.example": (host) => [
      "node",
      "-e",
      `require("net").connect(${port}, "${host}").on("error", (e) => console.log(e.code)).on("end", () => console.log("end"))`,
    ],
  };

  for (const [host, argv] of Object.entries(programs)) {
    it(`is understood by ${host.split(".")[0]}`, async () => {
      await using box = await client.create({ workspace: { dir, mode: "overlay" } });
      const { stdout, stderr, timedOut } = await box.run(argv(host), { timeout: 60_000 });
      assert.equal(timedOut, false);
      // It is written down after the program was told.
      const [decision] = await eventually(
        () => Array.fromAsync(box.network.decisions()),
        (decisions) => decisions.length > 0,
      );
      assert.deepEqual([decision?.name, decision?.port], [host, port], stdout.text + stderr.text);
    });
  }
});
