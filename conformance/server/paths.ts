import { readVectors, type Text, textOf } from "../vectors/read.ts";
import type { Case } from "./suite.ts";
import { expect, same } from "./suite.ts";

interface PathVector {
  path: Text;
  workdir: Text;
  error?: string;
}

export const paths: Case[] = [
  {
    id: "paths.vectors",
    must: "accept and refuse paths as conformance/vectors/paths.json says",
    async run(server) {
      const box = await server.shared();
      for (const { path, workdir, error } of readVectors<PathVector>("paths.json")) {
        // Relative ones begin at the server's own working directory, which the vectors cannot know.
        if (workdir !== "/") continue;
        const text = textOf(path);
        if (!text.isWellFormed()) continue;
        const answer = await server.send(`/v1/sandboxes/${box}/files/stat?path=${encodeURIComponent(text)}`);
        const code = answer.json?.error?.code ?? "";
        const refusals = ["INVALID_PATH", "PATH_LEAVES_ROOT"];
        if (error) same(code, error, JSON.stringify(text.slice(0, 60)));
        else
          expect(
            !refusals.includes(code),
            `${JSON.stringify(text.slice(0, 60))} is well formed, not ${code}`,
          );
      }
    },
  },
  {
    id: "paths.relative",
    must: "begin relative paths at the sandbox's working directory",
    async run(server) {
      const box = await server.shared();
      const { sandbox } = await server.call(`/v1/sandboxes/${box}`);
      await server.call(`/v1/sandboxes/${box}/files/content?path=conformance-relative`, {
        method: "PUT",
        body: Buffer.from("x"),
      });
      const { stdout } = await server.sh(box, "cat conformance-relative; pwd");
      same(stdout.text, `x${sandbox.workdir}\n`, "what was written relative");
    },
  },
  {
    id: "paths.links",
    must: "never follow a link out of the sandbox's root, however it is aimed",
    async run(server) {
      const box = await server.shared();
      const up = "../".repeat(40);
      await server.sh(box, `ln -sfn ${up}etc/passwd /tmp/up; ln -sfn /etc/passwd /tmp/absolute`);
      const inside = (await server.sh(box, "cat /etc/passwd")).stdout.text;
      for (const name of ["up", "absolute"]) {
        const { status, bytes } = await server.send(`/v1/sandboxes/${box}/files/content?path=/tmp/${name}`);
        // Following it inside is right, and so is refusing it.
        if (status === 200) same(bytes.toString(), inside, "the file that a link leads to");
      }
    },
  },
  {
    id: "paths.bytes",
    must: "return names that are not UTF-8 as `path_bytes`, in base64",
    async run(server) {
      const box = await server.shared();
      await server.sh(
        box,
        "mkdir -p /tmp/names && cd /tmp/names && touch plain && touch $(printf 'a\\377b')",
      );
      const { files } = await server.call(`/v1/sandboxes/${box}/files?path=/tmp/names`);
      const names = files.map((file: Record<string, string>) => file.path ?? file.path_bytes).sort();
      same(names, [Buffer.from([0x61, 0xff, 0x62]).toString("base64"), "plain"].sort(), "names");
    },
  },
];
