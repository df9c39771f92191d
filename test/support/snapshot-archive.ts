// Snapshots as `caisson snapshot export` writes them, made by hand, so that tests can lie about everything in them.
import { createHash } from "node:crypto";
import { type Member, tarOf } from "./oci-image.ts";

export interface SnapshotInit {
  /** The parts by name; a home that is empty unless there is another one. */
  files?: Record<string, Buffer>;
  sandbox?: Record<string, unknown>;
  document?: Record<string, unknown>;
  /** Further members behind the good ones. */
  more?: Member[];
}

const pieceBytes = 1 << 20;

export const emptyTar = tarOf([]);

/** One whose id is right, whatever it holds. */
export function snapshotArchive({
  files = {},
  sandbox = {},
  document = {},
  more = [],
}: SnapshotInit): Buffer {
  const kept = { "home.tar": emptyTar, ...files };
  const box = {
    id: "sb_0123456789abcdef",
    driver: "bubblewrap",
    image: "host",
    workspace: { dir: "", mode: 1 },
    spec: {},
    ...sandbox,
  };
  const whole = { form: 1, memory: false, sandbox: box, processes: [], outputs: {}, ...document };
  const said = { id: idOf(kept, whole), ...whole };
  const members = Object.entries({ "snapshot.json": Buffer.from(JSON.stringify(said)), ...kept });
  return tarOf([...members.map(([name, content]) => ({ name, content, mode: 0o600 })), ...more]);
}

function idOf(files: Record<string, Buffer>, document: Record<string, unknown>): string {
  const { spec, driver, image, workspace } = document.sandbox as Record<string, unknown>;
  const more = document.memory ? [document.outputs, document.host] : [];
  const words = JSON.stringify([spec, driver, image, workspace, document.processes, ...more]);
  const hash = createHash("sha256").update(words);
  for (const [name, bytes] of Object.entries(files).sort(([a], [b]) => (a < b ? -1 : 1))) {
    hash.update(`\0/${name}\0${bytes.length}\0`);
    // Pieces of zeros are none of it.
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      const piece = bytes.subarray(at, at + pieceBytes);
      if (piece.some((byte) => byte !== 0)) hash.update(`\0${at}\0`).update(piece);
    }
  }
  return `sn_${hash.digest("hex").slice(0, 32)}`;
}

/** A member behind an extended header that says one thing more of it. */
export function withExtended(member: Member, key: string, value: string): Member[] {
  const rest = ` ${key}=${value}\n`;
  let length = rest.length + 1;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  return [{ kind: "x", name: "PaxHeader", content: `${length}${rest}` }, member];
}
