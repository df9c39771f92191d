// What strangers wrote is read strictly: every wrong document is refused with IMAGE_INVALID, and with words that help.
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { describe, it } from "node:test";
import { CaissonError } from "@caisson/contract";
import type { Blobs } from "./blobs.ts";
import { readConfig } from "./config.ts";
import { checkName, familiarName } from "./import.ts";
import { findImage } from "./manifest.ts";

const invalid = (words: RegExp) => (error: unknown) =>
  error instanceof CaissonError && error.code === "IMAGE_INVALID" && words.test(error.message);
const json = (value: unknown) => Buffer.from(JSON.stringify(value));
const digest = (bytes: Buffer) => hash("sha256", bytes);
const arch = process.arch === "x64" ? "amd64" : process.arch;

/** Documents by name, in memory. */
function documents(files: Record<string, Buffer>): Blobs {
  return {
    has: async (name) => Object.hasOwn(files, name),
    read: async (name) =>
      files[name] ?? Promise.reject(new CaissonError("IMAGE_INVALID", `it has no ${name}`)),
    stream: () => assert.fail("no layer is read"),
    close: async () => {},
  };
}

describe("configurations of images", () => {
  const layer = `sha256:${"a".repeat(64)}`;
  const rootfs = { diff_ids: [layer] };

  it("give what a sandbox needs, and nothing is believed that is not a text", () => {
    const { config, diffIds } = readConfig(
      json({
        os: "linux",
        architecture: arch,
        rootfs,
        config: { Env: ["A=1=2", "b", "=c", "X-Y=1", "__proto__=1"], Cmd: null },
      }),
    );
    assert.deepEqual(diffIds, ["a".repeat(64)]);
    assert.deepEqual({ ...config.env }, { A: "1=2" });
    assert.deepEqual([config.command, config.entrypoint, config.user], [[], [], ""]);
  });

  for (const [what, document, words] of [
    ["no JSON", Buffer.from("{"), /not JSON/],
    ["bad UTF-8", Buffer.from([0x22, 0xff, 0x22]), /not JSON/],
    ["a list", json([]), /not an object/],
    ["no layers", json({}), /list of layers/],
    ["a digest of another kind", json({ rootfs: { diff_ids: ["sha512:00"] } }), /SHA-256/],
    ["a digest that is a path", json({ rootfs: { diff_ids: ["sha256:../../etc/passwd"] } }), /SHA-256/],
    ["another system", json({ os: "windows", rootfs }), /Linux/],
    ["too many layers", json({ rootfs: { diff_ids: Array(200).fill(layer) } }), /layers/],
    ["a NUL", json({ rootfs, config: { User: "a\0b" } }), /text/],
    ["a number for a text", json({ rootfs, config: { WorkingDir: 5 } }), /text/],
    ["a text for a list", json({ rootfs, config: { Cmd: "sh" } }), /list/],
    ["too much", json({ rootfs, config: { Env: Array(2000).fill("A=1") } }), /too long/],
  ] as const)
    it(`are refused with ${what}`, () => assert.throws(() => readConfig(document), invalid(words)));
});

describe("manifests", () => {
  const content = Buffer.from("layer");
  const config = json({
    os: "linux",
    architecture: arch,
    rootfs: { diff_ids: [`sha256:${digest(content)}`] },
  });
  const blob = (bytes: Buffer) => ({ [`blobs/sha256/${digest(bytes)}`]: bytes });
  const manifest = json({
    config: { digest: `sha256:${digest(config)}` },
    layers: [{ digest: `sha256:${digest(content)}` }],
  });
  const entry = { digest: `sha256:${digest(manifest)}` };
  const image = { ...blob(config), ...blob(manifest) };
  const oci = (manifests: unknown, more: Record<string, Buffer> = {}) =>
    findImage(documents({ ...image, ...more, "index.json": json({ manifests }) }));

  it("of an OCI layout are found for this kind of machine, also one index further down", async () => {
    const others = ["arm", "s390x"].map((architecture) => ({
      ...entry,
      platform: { os: "linux", architecture },
    }));
    const here = { ...entry, platform: { os: "linux", architecture: arch } };
    const inner = json({ manifests: [...others, here] });
    const found = await oci(
      [{ digest: `sha256:${digest(inner)}`, annotations: { "org.opencontainers.image.ref.name": "n:1" } }],
      blob(inner),
    );
    assert.deepEqual([found.name, found.id, found.layers.length], ["n:1", digest(config), 1]);
  });

  it("that hold nothing for this machine, several images or indexes without end are refused", async () => {
    await assert.rejects(
      oci([{ ...entry, platform: { os: "linux", architecture: "other" } }]),
      invalid(/nothing for linux/),
    );
    await assert.rejects(oci([entry, entry]), invalid(/holds 2 images/));
    let deep = json({ manifests: [entry] });
    const blobs: Record<string, Buffer> = {};
    for (let depth = 0; depth < 5; depth++) {
      Object.assign(blobs, blob(deep));
      deep = json({ manifests: [{ digest: `sha256:${digest(deep)}` }] });
    }
    await assert.rejects(
      findImage(documents({ ...image, ...blobs, "index.json": deep })),
      invalid(/too deep/),
    );
  });

  it("whose documents are not what their digests say are refused", async () => {
    const forged = { [`blobs/sha256/${digest(manifest)}`]: json({}) };
    await assert.rejects(oci([entry], forged), invalid(/digest/));
    const files = {
      "manifest.json": json([{ Config: `${"0".repeat(64)}.json`, Layers: [] }]),
      [`${"0".repeat(64)}.json`]: config,
    };
    await assert.rejects(findImage(documents(files)), invalid(/digest/));
  });

  it("of `docker save` are read, and refused where they name files elsewhere or lists that differ", async () => {
    const save = (value: unknown) => findImage(documents({ "manifest.json": json(value), "c.json": config }));
    const found = await save([{ Config: "c.json", Layers: ["l/layer.tar"], RepoTags: ["n:2"] }]);
    assert.deepEqual([found.name, found.layers[0]!.file], ["n:2", "l/layer.tar"]);
    await assert.rejects(save([{ Config: "../c.json", Layers: [] }]), invalid(/names no file/));
    await assert.rejects(save([{ Config: "c.json", Layers: ["a/../../b"] }]), invalid(/names no file/));
    await assert.rejects(save([{ Config: "c.json", Layers: [] }]), invalid(/lists of layers differ/));
    await assert.rejects(save([]), invalid(/holds 0 images/));
    await assert.rejects(findImage(documents({})), invalid(/neither/));
  });
});

describe("names of images", () => {
  it("are like those of registries", () => {
    assert.deepEqual(["node:24", "a/b", "host:5000/x"].map(checkName), [
      "node:24",
      "a/b:latest",
      "host:5000/x:latest",
    ]);
    for (const bad of ["", "host", "../x", "a//b", "-a", "a b", "a\n", "x".repeat(300)])
      assert.throws(() => checkName(bad), { code: "INVALID_INPUT" }, bad);
  });

  it("are those that were asked for, where an engine tells them in full", () => {
    for (const [full, asked, name] of [
      ["docker.io/library/node:24", "node:24", "node:24"],
      ["docker.io/library/node:24", "", "node:24"],
      ["docker.io/team/tool:1", "", "team/tool:1"],
      ["localhost/tool:latest", "tool", "tool"],
      ["localhost/tool:1", "", "localhost/tool:1"],
      ["node:24", "3f0a1b2c4d5e", "node:24"],
      ["host:5000/mynode:24", "node:24", "host:5000/mynode:24"],
      ["", "node:24", ""],
    ] as const)
      assert.equal(familiarName(full, asked), name);
  });
});
