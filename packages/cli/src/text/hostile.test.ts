// Every command that shows something, on a terminal, with a server whose every text tries to act upon it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type DescField, type DescMessage, type DescMethod, ScalarType } from "@bufbuild/protobuf";
import { connect } from "@caisson/client";
import type { Transport } from "@caisson/contract";
import { main } from "../invoke.ts";
import { MemoryIo } from "../testing/memory-io.ts";

const attack = "\u001b]52;c;aGk=\u0007\u001b]0;title\u001b\\\u009b2J\u202e\r\u001b[31mred\u001b[8mhidden";
const bytes = new TextEncoder().encode(attack);

function scalar(type: ScalarType): unknown {
  if (type === ScalarType.STRING) return attack;
  if (type === ScalarType.BYTES) return bytes;
  if (type === ScalarType.BOOL) return true;
  const is64 = [ScalarType.INT64, ScalarType.UINT64, ScalarType.SINT64, ScalarType.FIXED64].includes(type);
  return is64 ? 1n : 1;
}

function value(field: DescField, depth: number): unknown {
  switch (field.fieldKind) {
    case "scalar":
      return scalar(field.scalar);
    case "enum":
      return field.enum.values.at(-1)!.number;
    case "message":
      return hostile(field.message, depth);
    case "list": {
      if (field.listKind === "message") return [hostile(field.message, depth)];
      return [field.listKind === "scalar" ? scalar(field.scalar) : 1];
    }
    case "map":
      return field.mapKind === "message"
        ? {}
        : { [attack]: field.mapKind === "scalar" ? scalar(field.scalar) : 1 };
  }
}

/** A message whose every field is set, texts to the attack. `chosen` says which field of each oneof. */
function hostile(desc: DescMessage, depth = 0, chosen = 0): object {
  if (desc.typeName === "google.protobuf.Struct") return { key: attack };
  const init: Record<string, unknown> = {};
  for (const member of desc.members) {
    if (depth > 6) break;
    if (member.kind === "field") init[member.localName] = value(member, depth + 1);
    else {
      const field = member.fields[chosen % member.fields.length]!;
      init[member.localName] = { case: field.localName, value: value(field, depth + 1) };
    }
  }
  if (desc.typeName.endsWith("Response") && "nextPageToken" in init) init.nextPageToken = "";
  return create(desc, init as never);
}

/** Ends each process with `exit` after one event of every other kind. */
function answers(method: DescMethod): object[] {
  const event = method.output.fields.find(({ name }) => name === "event")?.message;
  const kinds = Math.max(1, event?.oneofs[0]?.fields.length ?? 1);
  if (!event) return [hostile(method.output)];
  return Array.from({ length: kinds }, (_, index) =>
    create(method.output, { event: hostile(event, 0, index) } as never),
  );
}

const transport: Transport = {
  unary: async (method) => hostile(method.output) as never,
  async *stream(method) {
    for (const answer of answers(method)) yield answer as never;
  },
  close: async () => {},
};

const box = "sb_0123456789abcdef";
const lines = [
  ["ls"],
  ["ls", "--all"],
  ["ps", box],
  ["ps"],
  ["session", "ls"],
  ["events", "--no-follow"],
  ["events"],
  ["files", "ls", box, "."],
  ["files", "stat", box, "x"],
  ["files", "cat", box, "x"],
  ["files", "watch", box, "."],
  ["logs", box],
  ["logs", box, "p1"],
  ["exec", box, "--", "x"],
  ["run", "--no-workspace", "--", "x"],
  ["diff", box],
  ["diff", box, "--patch"],
  ["apply", box],
  ["undo", box],
  ["discard", box],
  ["df"],
  ["prune"],
  ["doctor"],
  ["stats", box],
  ["extend", box, "--idle", "5m"],
  ["rm", box],
  ["keys", "ls"],
  ["config", "show"],
  ["profile", "ls"],
  ["profile", "show", attack],
  ["audit", "verify"],
  ["version"],
  ["approvals", "ls"],
  ["net", "log", box],
  ["net", "show", box],
  ["image", "ls"],
  ["create", "--no-workspace"],
  [attack],
  ["run", "--nonsense\u001b]0;x\u0007"],
];

for (const json of [false, true]) {
  for (const args of lines) {
    const line = [...args.slice(0, 2), ...(json ? ["--json"] : []), ...args.slice(2)];
    test(`harmless: ${JSON.stringify(args.join(" ").slice(0, 40))}${json ? " --json" : ""}`, {
      timeout: 20_000,
    }, async () => {
      const io = new MemoryIo({ terminals: ["stdout", "stderr"] });
      await using client = await connect({ transport, retry: false });
      const left = setTimeout(() => io.vanish(), 3000);
      await main(line, io, client, { sharesFiles: true, openapi: async () => "{}" });
      clearTimeout(left);
      for (const text of [io.out, io.err]) {
        const ours = text.replace(/\u001b\[(?:1|2|22|31|32|33|36|39)m/g, "").replace(/\r\u001b\[K/g, "");
        const found = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.exec(ours);
        assert.equal(
          found,
          null,
          `${JSON.stringify(ours.slice(Math.max(0, (found?.index ?? 0) - 40)).slice(0, 120))}`,
        );
      }
    });
  }
}
