// An interactive session as people have one: the launcher on a real terminal, all the way to the command's own.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type Account, accounts, startDaemon, type TestDaemon } from "../support/daemon.ts";
import { eventually } from "../support/eventually.ts";
import { Launcher } from "../support/launcher.ts";
import { Seat } from "../support/seat.ts";

for (const account of accounts()) suite(account);

function suite(account: Account): void {
  describe(`an interactive session as ${account.name}`, { timeout: 120_000 }, () => {
    let daemon: TestDaemon;
    let box: string;
    before(async () => {
      daemon = await startDaemon({ account });
      box = (await new Launcher(daemon).run(["create", "--no-workspace"])).out.trim();
    });
    const seats: Seat[] = [];
    after(async () => {
      for (const seat of seats) seat[Symbol.dispose]();
      await daemon[Symbol.asyncDispose]();
    });

    /** The launcher on a terminal. */
    function sit(...args: string[]): Seat {
      const seat = new Seat(daemon, args);
      seats.push(seat);
      return seat;
    }

    it("has a shell, whose line editing works", async () => {
      const seat = sit("exec", "-it", box, "--", "bash", "--norc", "-i");
      await seat.shows(/\$ /);
      seat.type("echo wrnog\u007f\u007f\u007f\u007frong $((6*7))\r");
      await seat.shows(/[\r\n]wrong 42\r\n/);
      seat.type("exit 9\r");
      assert.equal(await seat.code, 9);
    });

    it("is told how many colours the terminal has", async () => {
      const told = { account: daemon.account, env: { ...daemon.env, COLORTERM: "truecolor" } };
      const script = 'echo "$TERM $COLORTERM"';
      using seat = new Seat(told, ["exec", "-it", box, "--", "sh", "-c", script]);
      await seat.shows(/xterm truecolor\r\n/);
      assert.equal(await seat.code, 0);
    });

    it("passes Ctrl-C to what runs in front, and goes on", async () => {
      const seat = sit(
        "exec",
        "-it",
        box,
        "--",
        "sh",
        "-c",
        "trap 'echo caught' INT; echo up; sleep 100; echo on; read x",
      );
      await seat.shows(/up\r\n/);
      seat.type("\u0003");
      await seat.shows(/caught\r\non/);
      seat.type("\r");
      assert.equal(await seat.code, 0);
    });

    it("gets what was typed before it started, an end of input included", async () => {
      const seat = sit("exec", "-it", box, "--", "cat");
      seat.type("typed ahead\r\u0004");
      assert.equal(await seat.code, 0);
      assert.match(seat.text(), /typed ahead\r\n$/);
    });

    it("has job control: Ctrl-Z stops what runs in front, fg goes on with it", async () => {
      const seat = sit("exec", "-it", box, "--", "bash", "--norc", "-i");
      await seat.shows(/\$ /);
      // What is typed while bash hands the terminal over keeps the modes of its line editor, as on every terminal.
      seat.type("sh -c 'echo up; exec cat'\r");
      await seat.shows(/[\r\n]up\r\n/);
      seat.type("one\r");
      await seat.shows(/one\r\none/);
      seat.type("\u001a");
      await seat.shows(/Stopped +sh/);
      seat.type("jobs | grep -c Stopped\r");
      await seat.shows(/[\r\n]1\r\n/);
      seat.type("fg\r");
      await seat.shows(/fg\r\n.*exec cat'\r\n/s);
      seat.type("two\r");
      await seat.shows(/two\r\ntwo/);
      seat.type("\u0004");
      seat.type("exit 3\r");
      assert.equal(await seat.code, 3);
    });

    it("knows the terminal's size, also when it changes", async () => {
      const script =
        "stty size; trap 'stty size' WINCH; echo up; while [ ! -e /tmp/done ]; do sleep 0.05; done";
      const seat = sit("exec", "-it", box, "--", "sh", "-c", script);
      await seat.shows(/24 80\r\n.*up/s);
      seat.resize(132, 43);
      await seat.shows(/43 132\r\n/);
      await new Launcher(daemon).run(["exec", box, "--", "touch", "/tmp/done"]);
      assert.equal(await seat.code, 0);
    });

    it("passes every byte untouched in both directions", async () => {
      const seat = sit(
        "exec",
        "-it",
        box,
        "--",
        "sh",
        "-c",
        "stty raw -echo; printf ready; head -c 256 | od -An -v -tx1; printf '\\033]0;t\\007'",
      );
      await seat.shows(/ready/);
      const all = Uint8Array.from({ length: 256 }, (_, byte) => byte);
      seat.type(all);
      assert.equal(await seat.code, 0);
      const hex = seat
        .text()
        .replace(/^.*ready/s, "")
        .replace(/\u001b.*$/s, "")
        .replace(/\s/g, "");
      assert.equal(hex, Buffer.from(all).toString("hex"));
      assert.ok(
        seat.text().endsWith("\u001b]0;t\u0007"),
        "a session that is interactive may use the terminal",
      );
    });

    it("makes control characters visible where the session is not interactive", async () => {
      const seat = sit("exec", box, "--", "printf", "\\033]0;t\\007\\033[2J.");
      assert.equal(await seat.code, 0);
      assert.equal(seat.text(), "^[]0;t^G^[[2J.");
    });

    it("ends what it started when the terminal is closed", async () => {
      const seat = sit("run", "-it", "--no-workspace", "--", "sh", "-c", "echo up; sleep 1000");
      await seat.shows(/up\r\n/);
      seat.hangUp();
      await seat.code;
      const living = async () =>
        (await new Launcher(daemon).json(["ls"])).map(({ id }: { id: string }) => id);
      await eventually(living, (ids) => ids.length === 1 && ids[0] === box);
    });
  });
}
