// A container engine that has the image which the documents name.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { type Engine, sharedEngine } from "../../support/engine.ts";
import { busyboxLayer } from "../../support/oci-image.ts";

export async function engineWithImage(): Promise<Engine> {
  const engine = await sharedEngine();
  const made = spawnSync("docker", ["import", "-", "node:24"], {
    env: { ...process.env, ...engine.env },
    input: busyboxLayer(),
  });
  assert.equal(made.status, 0, String(made.stderr));
  return engine;
}

/** Whether an example takes an image from an engine. */
export const takesFromEngine = /image import --docker/;
