// Stands in for Firecracker and its jailer where there is no hardware to run them: takes the jailer's command line, checks
// every request against Firecracker's published description and against what may be said when, and has a real guest behind
// it. What it cannot do is be a machine: it keeps no memory, and a machine that is loaded is a new guest.
//
//   peer.ts GUEST FAULTS JAILER-ARGUMENTS…
import { appendFileSync, chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { checkRequest } from "./check-request.ts";
import { PeerMachine } from "./machine.ts";

const [guest, faults, ...words] = process.argv.slice(2) as [string, string, ...string[]];
const split = words.indexOf("--");
const { values: jail } = parseArgs({
  args: words.slice(0, split),
  strict: true,
  options: {
    id: { type: "string" },
    "exec-file": { type: "string" },
    uid: { type: "string" },
    gid: { type: "string" },
    "chroot-base-dir": { type: "string" },
    "resource-limit": { type: "string", multiple: true },
  },
});
const { values: own } = parseArgs({
  args: words.slice(split + 1),
  strict: true,
  options: { "api-sock": { type: "string" }, level: { type: "string" } },
});

function refuse(why: string): never {
  console.error(why);
  process.exit(1);
}

const program = basename(jail["exec-file"] ?? refuse("Missing argument: exec-file"));
if (!/^[A-Za-z0-9-]{1,64}$/.test(jail.id ?? "")) refuse("Invalid instance ID");
if (!program.includes("firecracker")) refuse("exec_file must contain firecracker");
if (!existsSync(jail["chroot-base-dir"] ?? "")) refuse("Failed to canonicalize the chroot base");
if (!jail["resource-limit"]?.every((limit) => /^(fsize|no-file)=\d+$/.test(limit))) refuse("Invalid limit");
const [uid, gid] = [Number(jail.uid), Number(jail.gid)];
if (!(uid > 0) || !(gid > 0)) refuse("Failed to parse uid or gid");

const root = join(jail["chroot-base-dir"]!, program, jail.id!, "root");
mkdirSync(root, { recursive: true });
chownSync(root, uid, gid);
process.chdir(root);
/** Everything is named as it is inside the jail; short, since sockets have short names. */
const inJail = (path: string) => `.${path}`;
const machine = new PeerMachine((word) => appendFileSync(`${faults}.words`, `${word}\n`));
const asked: Record<string, Record<string, unknown>> = {};
let state: "Not started" | "Running" | "Paused" = "Not started";
/** Firecracker says yes as soon as the machine runs; what comes after shows on the console. */
const log = (line: string) => appendFileSync(`${faults}.requests`, `${line}\n`);

async function carryOut(
  method: string,
  path: string,
  body: Record<string, unknown>,
): Promise<string | undefined> {
  const isBefore = state === "Not started";
  const need = (name: unknown) => (existsSync(inJail(String(name))) ? undefined : `No such file: ${name}`);
  switch (`${method} ${path}`) {
    case "PUT /boot-source":
      asked.boot = body;
      return isBefore ? (need(body.kernel_image_path) ?? need(body.initrd_path)) : "not after the start";
    case "PUT /drives/image":
    case "PUT /drives/beside":
      asked[path] = body;
      return isBefore ? need(body.path_on_host) : "not after the start";
    case "PUT /machine-config":
      return isBefore ? undefined : "not after the start";
    case "PUT /vsock":
      asked.vsock = body;
      return isBefore ? undefined : "not after the start";
    case "PUT /actions":
      return isBefore && asked.boot ? await begin(String(asked.boot.boot_args)) : "not after the start";
    case "PUT /snapshot/load": {
      if (!isBefore || Object.keys(asked).length > 0)
        return "Loading a microVM snapshot not allowed after configuring";
      const memory = (body.mem_backend as { backend_path?: string } | undefined)?.backend_path;
      const lacking = need(body.snapshot_path) ?? need(memory);
      if (lacking) return lacking;
      const saved = JSON.parse(readFileSync(inJail(String(body.snapshot_path)), "utf8"));
      Object.assign(asked, saved.asked);
      const disks = Object.keys(asked).filter((path) => path.startsWith("/drives/"));
      const missing = disks.map((path) => need(asked[path]!.path_on_host)).find(Boolean);
      if (missing || disks.length === 0) return missing ?? "there is no disk";
      if (body.resume_vm !== true) return "it would stand still";
      return await begin(saved.link);
    }
    case "PUT /snapshot/create": {
      if (state !== "Paused") return "not unless it is paused";
      const saved = JSON.stringify({ asked, link: asked.boot?.boot_args });
      for (const path of [body.snapshot_path, body.mem_file_path]) {
        writeFileSync(inJail(String(path)), saved);
        chownSync(inJail(String(path)), uid, gid);
      }
      machine.cut();
      return undefined;
    }
    case "PATCH /vm":
      if (isBefore) return "not before the start";
      state = body.state === "Paused" ? "Paused" : "Running";
      if (state === "Paused") machine.hold();
      else machine.release();
      return undefined;
    default:
      return undefined;
  }
}

async function begin(commandLine: string): Promise<string | undefined> {
  state = "Running";
  const link = /(?:^| )caisson\.link=(\S+)/.exec(commandLine)?.[1];
  if (link === "none") {
    const hangs = existsSync(faults) && readFileSync(faults, "utf8").includes("hangs");
    if (!hangs) console.log("caisson: the machine boots");
    setTimeout(() => process.exit(hangs ? 1 : 0), 20);
    return undefined;
  }
  const port = Number(/^vsock:(\d+)$/.exec(link ?? "")?.[1]);
  if (!port || !asked.vsock) return "there would be no way to it";
  await machine.start(guest, inJail(String(asked.vsock.uds_path)), port, uid);
  return undefined;
}

const server = createServer(async (request, response) => {
  const { method = "", url = "" } = request;
  let text = "";
  for await (const piece of request.setEncoding("utf8")) text += piece;
  const body = text === "" ? undefined : JSON.parse(text);
  const checked = checkRequest(method, url, body);
  const fault = typeof checked === "string" ? checked : await carryOut(method, url, body);
  log(`${method} ${url} ${fault ?? "ok"}`);
  const answer = url === "/version" ? { firecracker_version: "peer" } : { id: jail.id, state };
  const status = fault === undefined ? Number(checked) : 400;
  response.writeHead(status, { "Content-Type": "application/json" });
  response.end(
    fault !== undefined
      ? JSON.stringify({ fault_message: fault })
      : status === 200
        ? JSON.stringify(answer)
        : "",
  );
});
const socket = inJail(own["api-sock"] ?? "/run/firecracker.socket");
server.listen(socket, () => chownSync(socket, uid, gid));
