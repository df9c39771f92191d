import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { MechanismSchema, MechanismState } from "@caisson/contract";
import type { Driver } from "../driver/driver.ts";
import { MachineSizes } from "../driver/microvm/sizes.ts";
import { noLimits } from "../limits/index.ts";
import { preparedLimits } from "../profiles/index.ts";
import { fitMachine, insideMachine } from "./machine-memory.ts";

const GiB = 1024 ** 3;
const machines = { name: "qemu", sizes: new MachineSizes(GiB, 24 * GiB) } as Partial<Driver> as Driver;
const containers = { name: "bubblewrap" } as Driver;

const limits = (memoryBytes: number) => ({ ...noLimits, memoryBytes });
const fitted = (bound: number, asked = 0, driver = machines) => {
  const { limits: fit, machineMemory } = fitMachine(driver, limits(bound), limits(asked));
  return [fit.memoryBytes, machineMemory];
};

test("who asks for no more than the usual machine has gets that one", () => {
  const usual = undefined;
  assert.deepEqual(fitted(preparedLimits.memoryBytes), [GiB, usual], "the default profile asks for nothing");
  assert.deepEqual(fitted(GiB / 2, GiB / 2), [GiB / 2, usual]);
  assert.deepEqual(fitted(GiB, GiB), [GiB, usual]);
  assert.deepEqual(fitted(0), [0, usual], "no bound at all");
});

test("more memory is a larger machine, by a request or by a profile", () => {
  assert.deepEqual(fitted(4 * GiB, 4 * GiB), [4 * GiB, 4 * GiB], "the default's number, but asked for");
  assert.deepEqual(fitted(3 * GiB, 3 * GiB), [3 * GiB, 4 * GiB]);
  assert.deepEqual(fitted(2 * GiB), [2 * GiB, 2 * GiB]);
});

test("what the host cannot hold is refused where it was asked for, and lowered where a profile has it", () => {
  assert.throws(() => fitted(64 * GiB, 64 * GiB), {
    code: "NOT_ENFORCEABLE",
    metadata: { mechanism: "limit.memory" },
    message: /this host can hold a machine of \d+ bytes at most/,
  });
  const { most } = machines.sizes!;
  assert.deepEqual(fitted(64 * GiB), [most, most]);
});

test("other drivers bound what they are told", () => {
  assert.deepEqual(fitted(64 * GiB, 64 * GiB, containers), [64 * GiB, undefined]);
});

test("the report names who really bounds what runs in a machine", () => {
  const { ENFORCED, OFF } = MechanismState;
  const by = (name: string, state: MechanismState = ENFORCED) =>
    create(MechanismSchema, { name, state, by: state === ENFORCED ? "cgroup v1" : "" });
  const planned = [by("limit.memory"), by("limit.pids"), by("limit.cpu")];
  const names = (mechanisms: typeof planned) => mechanisms.map((mechanism) => mechanism.by);
  assert.deepEqual(names(insideMachine(machines, planned)), ["the machine's kernel", "rlimit", "cgroup v1"]);
  assert.deepEqual(insideMachine(containers, planned), planned);
  assert.equal(insideMachine(machines, [by("limit.memory", OFF)])[0]!.by, "");
});
