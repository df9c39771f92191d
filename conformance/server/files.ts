import { randomBytes } from "node:crypto";
import { type Case, expect, same } from "./suite.ts";
import { hostileArchives, tar } from "./tar.ts";

const at = (box: string, what: string, path: string, more = "") =>
  `/v1/sandboxes/${box}/${what}?path=${encodeURIComponent(path)}${more}`;
const put = (text: string | Uint8Array, headers: Record<string, string> = {}) => ({
  method: "PUT",
  headers,
  body: Buffer.from(text),
});

export const files: Case[] = [
  {
    id: "files.write",
    must: "write atomically with mode and parents, and read it back exactly, by offset and length",
    async run(server) {
      const box = await server.shared();
      const data = randomBytes(1_500_000);
      await server.refuses("PATH_NOT_FOUND", at(box, "files/content", "/tmp/w/deep/f"), put("x"));
      const { info } = await server.call(
        at(box, "files/content", "/tmp/w/deep/f", "&parents=true&mode=384"),
        put(data),
      );
      same([info.size, info.mode, info.type], ["1500000", 0o600, "FILE_TYPE_REGULAR"], "what was written");
      const read = await server.send(at(box, "files/content", "/tmp/w/deep/f"));
      same(read.bytes.equals(data), true, "what is read");
      same(read.headers.etag, `"${info.etag}"`, "its etag");
      const part = await server.send(at(box, "files/content", "/tmp/w/deep/f", "&offset=1000&length=77"));
      same(part.bytes.equals(data.subarray(1000, 1077)), true, "a part");
      const beyond = await server.send(at(box, "files/content", "/tmp/w/deep/f", "&offset=9000000"));
      same([beyond.status, beyond.bytes.length], [200, 0], "beyond the end");
    },
  },
  {
    id: "files.if_match",
    must: "write only over what the caller has seen",
    async run(server) {
      const box = await server.shared();
      const path = (condition: string) =>
        at(box, "files/content", "/tmp/match", `&if_match=${encodeURIComponent(condition)}`);
      await server.refuses("ETAG_MISMATCH", path("*"), put("x"));
      const { info } = await server.call(path("-"), put("one"));
      await server.refuses("ETAG_MISMATCH", path("-"), put("x"));
      const next = await server.call(path(info.etag), put("two"));
      expect(next.info.etag !== info.etag, "the etag changes with the content");
      await server.refuses("ETAG_MISMATCH", path(info.etag), put("three"));
      same(
        (await server.send(at(box, "files/content", "/tmp/match"))).bytes.toString(),
        "two",
        "what stayed",
      );
    },
  },
  {
    id: "files.tree",
    must: "make, list, move and remove directories, each refusal by its own code",
    async run(server) {
      const box = await server.shared();
      const post = (what: string, body: object) => [`/v1/sandboxes/${box}/files:${what}`, { body }] as const;
      await server.call(...post("mkdir", { path: "/tmp/t/a/b", parents: true }));
      await server.refuses("PATH_EXISTS", ...post("mkdir", { path: "/tmp/t/a" }));
      await server.call(at(box, "files/content", "/tmp/t/a/f"), put("f"));
      await server.call(...post("move", { from: "/tmp/t/a/f", to: "/tmp/t/a/b/g" }));
      await server.refuses("PATH_NOT_FOUND", ...post("move", { from: "/tmp/t/a/f", to: "/tmp/t/x" }));
      const listed = await server.call(at(box, "files", "/tmp/t", "&recursive=true"));
      same(listed.files.map(({ path }: { path: string }) => path).sort(), ["a", "a/b", "a/b/g"], "the tree");
      same(listed.truncated, false, "a small listing");
      const remove = { method: "DELETE" };
      await server.refuses("DIRECTORY_NOT_EMPTY", at(box, "files", "/tmp/t"), remove);
      await server.call(at(box, "files", "/tmp/t", "&recursive=true"), remove);
      await server.refuses("PATH_NOT_FOUND", at(box, "files/stat", "/tmp/t"));
      await server.refuses("NOT_A_FILE", at(box, "files/content", "/tmp"));
      await server.refuses("NOT_A_DIRECTORY", at(box, "files", "/etc/passwd"));
    },
  },
  {
    id: "files.special",
    must: "see FIFOs and devices without ever opening them, and set-id bits never",
    async run(server) {
      const box = await server.shared();
      await server.sh(box, "rm -f /tmp/fifo; mkfifo /tmp/fifo");
      const { info } = await server.call(at(box, "files/stat", "/tmp/fifo"));
      same(info.type, "FILE_TYPE_SPECIAL", "its type");
      await server.refuses("NOT_A_FILE", at(box, "files/content", "/tmp/fifo"));
      await server.refuses(
        "INVALID_INPUT",
        at(box, "files/content", "/tmp/set-id", `&mode=${0o4755}`),
        put("x"),
      );
    },
  },
  {
    id: "files.watch",
    must: "tell changes below a directory from the moment it says `ready`",
    async run(server) {
      const box = await server.shared();
      await server.sh(box, "mkdir -p /tmp/watched/sub");
      let told = false;
      const events = await server.events(
        at(box, "files:watch", "/tmp/watched", "&recursive=true"),
        {},
        (event) => {
          if (event.event === "ready" && !told) {
            told = true;
            void server.sh(box, "echo 1 > /tmp/watched/sub/new; rm /tmp/watched/sub/new");
          }
          return event.event === "removed";
        },
      );
      const seen = events.map(({ event, data }) => `${event} ${data.path}`);
      expect(
        seen.includes("created sub/new") && seen.includes("removed sub/new"),
        `both changes, not ${seen}`,
      );
    },
  },
  {
    id: "files.archives",
    must: "stream a directory as tar and back",
    async run(server) {
      const box = await server.shared();
      await server.sh(
        box,
        "mkdir -p /tmp/out/d /tmp/in; echo hi > /tmp/out/d/f; ln -s d/f /tmp/out/link; chmod 750 /tmp/out/d",
      );
      const { bytes } = await server.send(at(box, "archive", "/tmp/out"));
      const { files } = await server.call(at(box, "archive", "/tmp/in"), put(bytes));
      expect(Number(files) >= 2, "files that were unpacked");
      const list = "find . | sort; find . -type f -exec cat {} +; find . -name d -exec stat -c %a {} +";
      const { stdout } = await server.sh(box, `cd /tmp/in; ${list}`);
      expect(/d\/f\n.*link\n/s.test(stdout.text) && stdout.text.endsWith("hi\n750\n"), stdout.text);
    },
  },
  {
    id: "files.hostile_archives",
    must: "reject a hostile archive whole: `..`, absolute names, devices, set-id bits, writing through links",
    async run(server) {
      const box = await server.shared();
      for (const [name, entries] of Object.entries(hostileArchives)) {
        await server.sh(box, "rm -rf /tmp/hostile /tmp/escaped; mkdir /tmp/hostile");
        const answer = await server.send(
          at(box, "archive", "/tmp/hostile"),
          put(tar([{ name: "good", body: "x" }, ...entries])),
        );
        same(answer.json?.error?.code, "HOSTILE_ARCHIVE", name);
        const { stdout } = await server.sh(box, "ls -A /tmp/hostile; ls -d /tmp/escaped 2>/dev/null");
        same(stdout?.text ?? "", "", `what ${name} left`);
      }
    },
  },
];
