import { randomBytes } from "node:crypto";
import { bytesOf } from "./server.ts";
import { type Case, expect, same } from "./suite.ts";

export const exec: Case[] = [
  {
    id: "exec.exit",
    must: "return a non-zero exit as a value, and a death by signal as 128 + N with the signal's name",
    async run(server) {
      const box = await server.shared();
      for (const code of [0, 1, 42, 255])
        same((await server.sh(box, `exit ${code}`)).exit.code, code, "exit code");
      const { exit } = await server.sh(box, "kill -KILL $$");
      same([exit.code, exit.signal, exit.lost], [137, "SIGKILL", ""], "death by signal");
      expect(typeof exit.duration_ms === "number" && exit.duration_ms > 0, "duration_ms is a number");
      expect(exit.enforced.mechanisms.length > 0, "an exit says what was enforced");
    },
  },
  {
    id: "exec.argv",
    must: "hand arguments over exactly, without a shell",
    async run(server) {
      const box = await server.shared();
      const given = [
        "",
        " ",
        "a b",
        "*",
        "$HOME",
        "'",
        '"',
        "\\",
        "\n",
        "-n",
        "--",
        "žluťoučký 🐎",
        "x".repeat(50_000),
      ];
      const { stdout } = await server.exec(box, ["sh", "-c", 'printf "%s\\0" "$@"', "sh", ...given]);
      same(stdout.text.split("\0").slice(0, -1), given, "arguments");
    },
  },
  {
    id: "exec.output",
    must: "return output as text where it is UTF-8 and as base64 where not, stdout and stderr apart",
    async run(server) {
      const box = await server.shared();
      const { stdout, stderr } = await server.sh(box, "printf 'gr\\303\\274n'; printf '\\377\\376' >&2");
      same(stdout, { text: "grün" }, "text");
      same(stderr, { bytes: "//4=" }, "bytes");
    },
  },
  {
    id: "exec.stdin",
    must: "give standard input exactly, then its end; and its end at once where there is none",
    async run(server) {
      const box = await server.shared();
      const data = randomBytes(300_000);
      const { stdout } = await server.exec(box, ["cat"], { stdin_bytes: data.toString("base64") });
      same(bytesOf(stdout).equals(data), true, "300,000 random bytes through cat");
      same((await server.sh(box, "cat; echo end")).stdout.text, "end\n", "no input");
    },
  },
  {
    id: "exec.env",
    must: "let nothing of its own environment in, and one command's variables not reach another",
    async run(server) {
      const box = await server.shared();
      const { stdout } = await server.sh(box, "echo $MINE; env", { env: { MINE: "given" } });
      expect(stdout.text.startsWith("given\n"), "a command's own variable");
      expect(!/CAISSON_(HOME|KEY|CONFIG)/.test(stdout.text), "no variable of the server's");
      same((await server.sh(box, `echo "\${MINE-none}"`)).stdout.text, "none\n", "the next command's");
    },
  },
  {
    id: "exec.not_found",
    must: "tell a program that is not there from one that cannot be run",
    async run(server) {
      const box = await server.shared();
      const path = `/v1/sandboxes/${box}:exec`;
      const tried = (argv: string[]) => ({ body: { command: { argv } } });
      await server.refuses("COMMAND_NOT_FOUND", path, tried(["no-such-program"]));
      await server.sh(box, "echo x > /tmp/plain; chmod 644 /tmp/plain");
      await server.refuses("COMMAND_NOT_EXECUTABLE", path, tried(["/tmp/plain"]));
      await server.refuses("INVALID_INPUT", path, tried([]));
      await server.refuses("INVALID_INPUT", path, tried([""]));
      await server.refuses("PATH_NOT_FOUND", path, {
        body: { command: { argv: ["true"], cwd: "/nowhere" } },
      });
    },
  },
  {
    id: "exec.timeout",
    must: "end a command at its time with everything it started: SIGTERM, grace, SIGKILL",
    async run(server) {
      const box = await server.shared();
      const polite = await server.sh(box, 'trap "echo bye; exit 7" TERM; sleep 60 & wait', {
        timeout_ms: 300,
      });
      same([polite.exit.timed_out, polite.stdout.text], [true, "bye\n"], "SIGTERM first");
      const stubborn = { timeout_ms: 300, grace_ms: 200 };
      const script = "trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep 61' &) ; sleep 61";
      const { exit } = await server.sh(box, script, stubborn);
      same([exit.timed_out, exit.signal], [true, "SIGKILL"], "SIGKILL after the grace");
      const left = await server.sh(
        box,
        "for p in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$p; echo; done | grep -c '^sleep 6[1]'",
      );
      same(left.stdout.text, "0\n", "processes that are left");
    },
  },
  {
    id: "exec.parallel",
    must: "run several commands in one sandbox at once",
    async run(server) {
      const box = await server.shared();
      const meet = (mine: string, other: string) =>
        server.sh(
          box,
          `touch /tmp/meet-${mine}; while [ ! -e /tmp/meet-${other} ]; do sleep 0.01; done; echo met`,
        );
      const [a, b] = await Promise.all([meet("a", "b"), meet("b", "a")]);
      same([a.stdout.text, b.stdout.text], ["met\n", "met\n"], "two that wait for each other");
    },
  },
  {
    id: "exec.interactive",
    must: "take input by offset, once, and end it when told",
    async run(server) {
      const box = await server.shared();
      const command = { argv: ["cat"], keep_stdin: true };
      const [started] = await server.events(
        `/v1/sandboxes/${box}/processes`,
        { body: { command } },
        ({ event }) => event === "started",
      );
      const process = `/v1/sandboxes/${box}/processes/${started!.data.id}`;
      const write = (offset: number, text: string, end = false) =>
        server.call(`${process}/stdin`, { body: { offset: String(offset), text, end } });
      same((await write(0, "one ")).offset, "4", "bytes taken");
      same((await write(0, "one ")).offset, "4", "the same bytes again");
      same((await write(2, "e two", true)).offset, "7", "bytes that overlap");
      await server.call(`${process}:wait`);
      const events = await server.events(`${process}/events?no_follow=true`);
      const output = events.filter(({ event }) => event === "stdout").map(({ data }) => data.text);
      same(output.join(""), "one two", "what the command read");
      await server.refuses("PROCESS_ENDED", `${process}/stdin`, { body: { offset: "7", text: "x" } });
      await server.refuses("PROCESS_ENDED", `${process}:signal`, { body: { signal: "TERM" } });
    },
  },
  {
    id: "exec.signal",
    must: "send signals to a command's whole group, by name with or without SIG",
    async run(server) {
      const box = await server.shared();
      for (const signal of ["SIGTERM", "TERM"]) {
        const command = { argv: ["sh", "-c", "sleep 62 & echo up; wait"] };
        const events = await server.events(
          `/v1/sandboxes/${box}/processes`,
          { body: { command } },
          ({ event }) => event === "stdout",
        );
        const process = `/v1/sandboxes/${box}/processes/${events[0]!.data.id}`;
        await server.call(`${process}:signal`, { body: { signal } });
        same((await server.call(`${process}:wait`)).process.exit.signal, "SIGTERM", "its end");
      }
      const command = { argv: ["sleep", "62"] };
      const [started] = await server.events(
        `/v1/sandboxes/${box}/processes`,
        { body: { command } },
        () => true,
      );
      const process = `/v1/sandboxes/${box}/processes/${started!.data.id}`;
      await server.refuses("INVALID_INPUT", `${process}:signal`, { body: { signal: "NONSENSE" } });
      await server.refuses("NO_TERMINAL", `${process}:resize`, { body: { columns: 80, rows: 24 } });
      await server.call(`${process}:signal`, { body: { signal: "KILL" } });
    },
  },
  {
    id: "exec.terminal",
    must: "give a terminal of the size that was asked for, and change it",
    async run(server) {
      const box = await server.shared();
      const command = {
        argv: [
          "sh",
          "-c",
          "stty size; trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.05; done",
        ],
        terminal: { columns: 100, rows: 40 },
      };
      let text = "";
      let process = "";
      const waiting = server.events(
        `/v1/sandboxes/${box}/processes`,
        { body: { command } },
        ({ event, data }) => {
          if (event === "started") process = data.id;
          if (event === "stdout") text += data.text;
          if (!text.includes("ready") || process === "") return false;
          const path = `/v1/sandboxes/${box}/processes/${process}:resize`;
          void server.call(path, { body: { columns: 120, rows: 50 } });
          process = "";
          return false;
        },
      );
      await waiting;
      same(text.split(/\s*\r?\n/).filter(Boolean), ["40 100", "ready", "50 120"], "what stty says");
    },
  },
];
