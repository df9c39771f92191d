import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { engineSocket } from "./socket.ts";

test("the setting comes first, then the variables", () => {
  const env = { DOCKER_HOST: "unix:///run/d.sock", CONTAINER_HOST: "unix:///run/p.sock" };
  assert.equal(engineSocket({ host: "unix:///run/own.sock", env }), "/run/own.sock");
  assert.equal(engineSocket({ host: "/run/own.sock", env }), "/run/own.sock");
  assert.equal(engineSocket({ host: "", env }), "/run/d.sock");
  assert.equal(engineSocket({ host: "", env: { CONTAINER_HOST: env.CONTAINER_HOST } }), "/run/p.sock");
});

test("an engine elsewhere is refused, and the word says who named it", () => {
  for (const host of ["tcp://10.0.0.1:2375", "ssh://somebody@far", "npipe:////./pipe/docker"]) {
    const asked = () => engineSocket({ host: "", env: { DOCKER_HOST: host } });
    assert.throws(asked, {
      code: "NO_DRIVER",
      message: /^DOCKER_HOST names (tcp|ssh|npipe), not a Unix socket/,
    });
  }
});

test("the context in use is found, unless a variable names another", () => {
  const home = mkdtempSync(join(tmpdir(), "caisson-contexts-"));
  try {
    const add = (name: string, value: string) => {
      const dir = join(home, ".docker/contexts/meta", hash("sha256", name));
      mkdirSync(dir, { recursive: true });
      writeFileSync(
        join(dir, "meta.json"),
        JSON.stringify({ Name: name, Endpoints: { docker: { Host: value } } }),
      );
    };
    add("rootless", "unix:///run/user/7/docker.sock");
    add("far", "ssh://far");
    writeFileSync(join(home, ".docker/config.json"), JSON.stringify({ currentContext: "rootless" }));
    const ask = (env: Record<string, string>) => engineSocket({ host: "", env: { HOME: home, ...env } });
    assert.equal(ask({}), "/run/user/7/docker.sock");
    assert.throws(() => ask({ DOCKER_CONTEXT: "far" }), { message: /the Docker context far names ssh/ });
    assert.throws(() => ask({ DOCKER_CONTEXT: "none" }), { message: /there is no Docker context none/ });
    assert.equal(ask({ DOCKER_CONTEXT: "far", DOCKER_HOST: "unix:///run/d.sock" }), "/run/d.sock");
    assert.notEqual(ask({ DOCKER_CONTEXT: "default" }), "/run/user/7/docker.sock");
  } finally {
    rmSync(home, { recursive: true });
  }
});

test("a rootless engine's socket is found where nobody names one", () => {
  const runtime = mkdtempSync(join(tmpdir(), "caisson-runtime-"));
  try {
    mkdirSync(join(runtime, "podman"));
    writeFileSync(join(runtime, "podman/podman.sock"), "");
    const found = engineSocket({ host: "", env: { XDG_RUNTIME_DIR: runtime } });
    assert.ok(found === "/var/run/docker.sock" || found === join(runtime, "podman/podman.sock"));
  } finally {
    rmSync(runtime, { recursive: true });
  }
});
