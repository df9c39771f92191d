import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { type Box, connect } from "@caisson/client";
import { processesWith, startDaemon } from "../support/daemon.ts";
import { refused } from "../support/errors.ts";
import { eventually } from "../support/eventually.ts";
import { conform } from "./conform.ts";

/** What a sandbox is like from inside, without what names it. */
async function insideOf(box: Box): Promise<string[]> {
  const look = [
    "grep -E '^(Cap|NoNewPrivs|Seccomp|Uid|Gid|Groups)' /proc/self/status",
    "cut -d' ' -f4- /proc/self/mountinfo | sed 's/[rw]fdno=[0-9]*//g' | sort",
    "cat /proc/self/limits",
    "env | sort",
    "find / /dev /etc /home /run /tmp /var -maxdepth 1 -printf '%M %u %g %p %l\\n' | sort",
    "ls /proc/self/fd | wc -l; cat /proc/net/dev; id; pwd; ls -1 /proc/1/ns",
  ];
  const { stdout } = await box.run(["sh", "-c", look.join("; ")]);
  return (
    stdout.text
      .replaceAll(box.id, "ID")
      .replaceAll(box.id.replaceAll("_", "-"), "ID")
      .replace(/\b([ug]id)=\d{5,}/g, "$1=OWN")
      // Each daemon lends its sandboxes the binary in its own data directory.
      .replace(/^\S+\/guest\/\S+ (\/run\/caisson\/guest)/m, "GUEST $1")
      .replace(/^(dr-xr-xr-x) +\d+( .* proc)$/m, "$1$2")
      .split("\n")
  );
}

await conform(({ box: make, client, driver, account, daemon, engine, gaps, hasOwnKernel }) => {
  it("enforces the same in a pooled sandbox as in a cold one, and looks the same inside", async () => {
    await using coldDaemon = await startDaemon({
      account,
      env: { CAISSON_POOL_MIN: "0", CAISSON_POOL_MAX: "0", ...engine?.env },
    });
    await using coldClient = await connect({ socket: coldDaemon.socket });
    await eventually(
      () => readdirSync(join(daemon.home, "sandboxes")),
      (ids) => ids.length > 0,
    );
    assert.deepEqual(readdirSync(join(coldDaemon.home, "sandboxes")), []);
    for (const spec of [{}, { profile: "restrictive" }, { syscalls: ["debug"], limits: { openFiles: 77 } }]) {
      await using pooled = await make(spec);
      await using cold = await coldClient.create({ ...spec, driver });
      assert.deepEqual(pooled.info.enforced, cold.info.enforced);
      assert.deepEqual(await insideOf(pooled), await insideOf(cold));
    }
  });

  it("takes a sandbox from the pool when one is ready", async () => {
    const wasWarm = async () => {
      const known = await Array.fromAsync(client.sandboxes.list({ all: true }));
      const there = readdirSync(join(daemon.home, "sandboxes"));
      await using box = await make();
      return there.includes(box.id) && !known.some(({ id }) => id === box.id);
    };
    await eventually(wasWarm, (warm) => warm, { within: 90_000 });
  });

  it("names tier, driver and profile, and every mechanism with its means", async () => {
    await using box = await make();
    const { enforced } = box.info;
    assert.deepEqual([enforced?.driver, enforced?.profile], [driver, "moderate"]);
    const states = new Map(enforced!.mechanisms.map(({ name, state }) => [name, state]));
    for (const name of [
      "namespace.user",
      "namespace.pid",
      "namespace.network",
      "seccomp",
      "landlock",
      "capabilities",
      "no_new_privs",
      "environment",
    ]) {
      assert.equal(states.get(name), gaps.has(name) ? "not enforced" : "enforced", name);
    }
    for (const { name, state, by } of enforced!.mechanisms) {
      if (state === "enforced") assert.notEqual(by, "", name);
    }
  });

  it("never falls below the tier that was asked for", async () => {
    const order = ["container", "gvisor", "microvm"];
    // A machine is made where machines are tried.
    const tier = driver === "qemu" ? "microvm" : "gvisor";
    await using box = await client.create({ tier });
    assert.ok(order.indexOf(box.info.tier) >= order.indexOf(tier));
    await refused("NO_DRIVER", client.create({ driver: "no-such-driver" }));
    await refused("INVALID_INPUT", client.create({ profile: "no-such-profile" }));
  });

  it("refuses an explicit limit that cannot be enforced, and runs a profile's with a report", async () => {
    await using probe = await make();
    const cgroups = probe.info.enforced!.mechanisms.some(({ by }) => by.startsWith("cgroup"));
    if (account.uid === 0) assert.ok(cgroups, "root has control groups here");
    if (!cgroups) {
      await refused("NOT_ENFORCEABLE", make({ limits: { cpus: 1 } }));
      await using box = await make({ profile: "restrictive" });
      const cpu = box.info.enforced!.mechanisms.find(({ name }) => name === "limit.cpu");
      assert.equal(cpu?.state, "not enforced");
      assert.notEqual(cpu?.detail, "");
    }
  });

  const unseen = gaps.has("host processes") && "its commands are no processes of the host";

  it("runs nothing as the host's root, each sandbox of a root daemon under its own uid", {
    skip: unseen,
  }, async () => {
    const uids = new Set<number>();
    for (const mark of [620_000, 640_000].map((number) => String(number + account.uid))) {
      const box = await make();
      await using _run = await box.exec(["sleep", mark]);
      const [pid] = await eventually(
        () =>
          hasOwnKernel ? machineOf(box.id, daemon.home) : processesWith(`sleep ${mark}`).filter(isSleep),
        (pids) => pids.length > 0,
      );
      const { uid } = statSync(`/proc/${pid}`);
      assert.notEqual(uid, 0);
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      assert.match(status, /^CapEff:\t0+$/m);
      assert.doesNotMatch(status, /^[UG]id:.*\b0\b/m);
      uids.add(uid);
    }
    if (account.uid === 0) assert.equal(uids.size, 2);
    else assert.deepEqual([...uids], [account.uid]);
  });
});

function isSleep(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8") === "sleep\n";
  } catch {
    return false;
  }
}

/** The process that runs a sandbox's machine: QEMU, two below what was launched. */
function machineOf(id: string, home: string): number[] {
  const outer = Number(
    /launched ([0-9]+)/.exec(readFileSync(`${home}/sandboxes/${id}/launch.log`, "utf8"))?.[1],
  );
  return childrenOf(outer).flatMap(childrenOf);
}

function childrenOf(pid: number): number[] {
  const listed = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
  return listed.split(" ").filter(Boolean).map(Number);
}
