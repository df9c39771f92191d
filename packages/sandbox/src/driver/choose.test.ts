import assert from "node:assert/strict";
import { test } from "node:test";
import { Tier } from "@caisson/contract";
import { chooseDriver } from "./choose.ts";
import type { Driver, Probe } from "./driver.ts";

function driver(name: string, tier: Tier, probe: Probe): Driver {
  const unused = () => Promise.reject(new Error("not to be called"));
  return { name, tier, capabilities: [], probe: async () => probe, launch: unused, adopt: unused };
}

const usable = { usable: true };
const container = driver("bubblewrap", Tier.CONTAINER, usable);
const gvisor = driver("runsc", Tier.GVISOR, usable);
const microvm = driver("qemu", Tier.MICROVM, { usable: false, reason: "no KVM", fix: "modprobe kvm" });
const all = [microvm, gvisor, container];

test("the weakest tier that is enough is taken, and container is enough unless said otherwise", async () => {
  assert.equal(await chooseDriver(all, { minimumTier: Tier.UNSPECIFIED, driver: "" }), container);
  assert.equal(await chooseDriver(all, { minimumTier: Tier.CONTAINER, driver: "" }), container);
  assert.equal(await chooseDriver(all, { minimumTier: Tier.GVISOR, driver: "" }), gvisor);
});

test("a driver that is not usable is passed over upwards, never downwards", async () => {
  const broken = driver("bubblewrap", Tier.CONTAINER, { usable: false, reason: "off" });
  assert.equal(await chooseDriver([broken, gvisor], { minimumTier: Tier.CONTAINER, driver: "" }), gvisor);
  await assert.rejects(chooseDriver(all, { minimumTier: Tier.MICROVM, driver: "" }), {
    code: "NO_DRIVER",
    message: /bubblewrap is below the tier microvm; runsc is below.*; qemu: no KVM \(modprobe kvm\)/,
  });
});

test("the strongest is the highest tier that is usable, and an emulated machine is never it", async () => {
  const wish = { minimumTier: Tier.STRONGEST, driver: "" };
  assert.equal(await chooseDriver(all, wish), gvisor);
  const real = driver("qemu", Tier.MICROVM, usable);
  assert.equal(await chooseDriver([container, gvisor, real], wish), real);
  const emulated = { ...real, capabilities: ["emulated"] as const };
  assert.equal(await chooseDriver([container, gvisor, emulated], wish), gvisor);
  await assert.rejects(chooseDriver([emulated], wish), { code: "NO_DRIVER", message: /emulated/ });
  // Known only by booting one.
  const untried: Driver = {
    ...real,
    capabilities: ["emulated"],
    async tryHardware() {
      Object.assign(this, { capabilities: [] });
    },
  };
  assert.equal(await chooseDriver([container, untried], wish), untried);
  assert.equal(
    await chooseDriver([container, emulated], { minimumTier: Tier.MICROVM, driver: "" }),
    emulated,
  );
});

test("a driver by name is that one or an error", async () => {
  assert.equal(await chooseDriver(all, { minimumTier: Tier.UNSPECIFIED, driver: "runsc" }), gvisor);
  const wishes = [
    { minimumTier: Tier.GVISOR, driver: "bubblewrap" },
    { minimumTier: Tier.UNSPECIFIED, driver: "qemu" },
    { minimumTier: Tier.UNSPECIFIED, driver: "chroot" },
  ];
  for (const wish of wishes) await assert.rejects(chooseDriver(all, wish), { code: "NO_DRIVER" });
  await assert.rejects(chooseDriver([], { minimumTier: Tier.UNSPECIFIED, driver: "" }), {
    code: "NO_DRIVER",
  });
});
