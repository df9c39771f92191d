import { hash } from "node:crypto";
import type { HostEntry } from "../bubblewrap/host-root.ts";
import type { Engine } from "./api.ts";

/** Inside a container: everything of ours is here. */
export const inside = {
  guest: "/.caisson/guest",
  door: "/.caisson/door",
  root: "/.caisson/root",
  shown: "/.caisson/shown",
} as const;

/** With a host, which Podman would add otherwise. */
const repository = "localhost/caisson-places";

/**
 * An image with nothing in it but places to mount on, and the links that the host's root has. It is made by us: an
 * engine that can reach no registry has it too.
 */
export async function ensureImage(engine: Engine, entries: readonly HostEntry[]): Promise<string> {
  const archive = placesArchive(entries);
  const tag = hash("sha256", archive).slice(0, 16);
  const name = `${repository}:${tag}`;
  const { status } = await engine.call({ method: "GET", path: `/images/${name}/json`, accept: [404] });
  if (status === 404) {
    const query = { fromSrc: "-", repo: name, message: "places for Caisson's sandboxes" };
    await engine.call({ method: "POST", path: "/images/create", query, tar: archive });
  }
  return name;
}

function placesArchive(entries: readonly HostEntry[]): Buffer {
  const members: Buffer[] = [];
  const made = new Set<string>();
  const directory = (path: string) => {
    if (path === "" || made.has(path)) return;
    directory(path.slice(0, path.lastIndexOf("/")));
    made.add(path);
    members.push(header(`${path.slice(1)}/`, "5"));
  };
  for (const path of ["/proc", "/dev", "/sys", "/etc", inside.door, inside.root, inside.shown])
    directory(path);
  members.push(header(inside.guest.slice(1), "0"));
  for (const entry of entries) {
    const path = inside.shown + entry.path;
    directory(path.slice(0, path.lastIndexOf("/")));
    if (entry.kind === "symlink") members.push(header(path.slice(1), "2", entry.target));
  }
  return Buffer.concat([...members, Buffer.alloc(1024)]);
}

/** A header of the format `ustar`, of something without content. */
function header(name: string, type: "0" | "2" | "5", target = ""): Buffer {
  const block = Buffer.alloc(512);
  block.write(name, 0, 100);
  block.write(type === "0" ? "0000644" : "0000755", 100);
  block.write("0000000", 108);
  block.write("0000000", 116);
  block.write("00000000000", 124);
  block.write("00000000000", 136);
  block.write("        ", 148);
  block.write(type, 156);
  block.write(target, 157, 100);
  block.write("ustar\0", 257);
  block.write("00", 263);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}
