import { readFile } from "node:fs/promises";
import { CaissonError } from "@caisson/contract/errors";

/** Far above what distributions, `subuid` ranges and directories of people give out. */
const firstUid = 0x6c00_0000;
const uidCount = 1 << 20;

/**
 * One uid of nobody's per sandbox of a root daemon, so that no sandbox is the host's root and none
 * shares limits, signals or files with another. Starts anywhere, so that a uid returns as late as can be,
 * and two daemons on a machine hardly meet.
 */
export class UidPool {
  readonly #used = new Set<number>();
  #next = firstUid + Math.floor(Math.random() * uidCount);
  #taken: Promise<(uid: number) => boolean> | undefined;

  /** A uid that no living sandbox has and that the host does not know. */
  async take(): Promise<number> {
    this.#taken ??= readTaken();
    const taken = await this.#taken;
    for (let tried = 0; tried < uidCount; tried++) {
      const uid = this.#next;
      this.#next = firstUid + ((uid + 1 - firstUid) % uidCount);
      if (this.#used.has(uid) || taken(uid)) continue;
      this.#used.add(uid);
      return uid;
    }
    throw new CaissonError("QUEUE_FULL", "no uid is left for another sandbox");
  }

  /** A sandbox that lives has it already. */
  reserve(uid: number): void {
    this.#used.add(uid);
  }

  release(uid: number): void {
    this.#used.delete(uid);
  }
}

/** Uids that are somebody's, by name or as part of somebody's range. */
async function readTaken(): Promise<(uid: number) => boolean> {
  const [passwd, group, subuid, subgid] = await Promise.all(
    ["/etc/passwd", "/etc/group", "/etc/subuid", "/etc/subgid"].map((file) =>
      readFile(file, "utf8").catch(() => ""),
    ),
  );
  const named = new Set([...fields(passwd, 2), ...fields(group, 2)].map(Number));
  const ranges = [subuid, subgid].flatMap((text) => {
    const first = fields(text, 1).map(Number);
    const count = fields(text, 2).map(Number);
    return first.map((start, index) => ({ start, end: start + (count[index] ?? 0) }));
  });
  return (uid) => named.has(uid) || ranges.some(({ start, end }) => uid >= start && uid < end);
}

function fields(text: string | undefined, index: number): string[] {
  return (text ?? "").split("\n").flatMap((line) => line.split(":")[index] ?? []);
}
