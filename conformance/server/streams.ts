import { bytesOf, type SentEvent } from "./server.ts";
import { type Case, expect, same } from "./suite.ts";

const output = (events: SentEvent[]) =>
  Buffer.concat(
    events.filter(({ event }) => event === "stdout" || event === "stderr").map(({ data }) => bytesOf(data)),
  );
const names = (events: SentEvent[]) => events.map(({ event }) => event);

export const streams: Case[] = [
  {
    id: "streams.run",
    must: "stream a run as `started`, `stdout`, `stderr`, `exit`, numbered by output bytes",
    async run(server) {
      const body = {
        command: { argv: ["sh", "-c", "printf one; sleep 0.1; printf two >&2; sleep 0.1; exit 3"] },
      };
      const events = await server.events("/v1/run/stream", { body });
      same(names(events), ["started", "stdout", "stderr", "exit"], "events");
      same(
        events.map(({ id }) => Number(id)),
        [0, 3, 6, 6],
        "numbers",
      );
      same(events[3]!.data.code, 3, "exit code");
    },
  },
  {
    id: "streams.live",
    must: "send the first bytes while the command runs",
    async run(server) {
      const body = { command: { argv: ["sh", "-c", "echo first; sleep 60"] } };
      const events = await server.events("/v1/run/stream", { body }, ({ event }) => event === "stdout");
      same(events.at(-1)!.data.text, "first\n", "what came first");
    },
  },
  {
    id: "streams.resume",
    must: "resume a process's output from any number, by query or Last-Event-ID, without gap or duplicate",
    async run(server) {
      const box = await server.shared();
      const script = "i=0; while [ $i -lt 300 ]; do echo line $i; echo err $i >&2; i=$((i+1)); done";
      const { process_id } = await server.sh(box, script);
      const path = `/v1/sandboxes/${box}/processes/${process_id}/events`;
      const whole = output(await server.events(path));
      same(
        whole.length,
        Number((await server.call(path.replace("/events", ""))).process.seq),
        "bytes in all",
      );
      for (const from of [0, 1, 7, 100, 1001, whole.length - 1, whole.length]) {
        for (const way of ["query", "header"]) {
          const events =
            way === "query"
              ? await server.events(`${path}?from=${from}`)
              : await server.events(path, { headers: { "last-event-id": String(from) } });
          same(output(events).equals(whole.subarray(from)), true, `what follows ${from} by ${way}`);
          same(events.at(-1)!.event, "exit", "the end of what follows");
          let at = from;
          for (const { event, id, data } of events) {
            if (event === "stdout" || event === "stderr") at += bytesOf(data).length;
            same(Number(id), at, "a number counts the bytes up to it");
          }
        }
      }
    },
  },
  {
    id: "streams.follow",
    must: "give two readers of a running process the same bytes, whenever they come",
    async run(server) {
      const box = await server.shared();
      const command = {
        argv: ["sh", "-c", "i=0; while [ $i -lt 20 ]; do echo $i; sleep 0.02; i=$((i+1)); done"],
      };
      let id = "";
      const first = server.events(
        `/v1/sandboxes/${box}/processes`,
        { body: { command } },
        ({ event, data }) => {
          if (event === "started") id = data.id;
          return false;
        },
      );
      while (id === "") await new Promise((resolve) => setTimeout(resolve, 5));
      const second = await server.events(`/v1/sandboxes/${box}/processes/${id}/events`);
      same(output(second).toString(), output(await first).toString(), "what both read");
    },
  },
  {
    id: "streams.gap",
    must: "tell by a gap what retention has dropped, and how much",
    async run(server) {
      const box = await server.box({ limits: { output_bytes: String(1 << 20) } });
      const { process_id } = await server.sh(box, "head -c 3000000 /dev/zero | tr '\\0' x");
      const events = await server.events(`/v1/sandboxes/${box}/processes/${process_id}/events`);
      const gap = events.find(({ event }) => event === "gap");
      expect(gap !== undefined, "a gap");
      same(
        Number(gap.data.missing_bytes) + output(events).length,
        3_000_000,
        "missing and kept bytes together",
      );
    },
  },
  {
    id: "streams.events",
    must: "number everything that happens from 1 without gaps, and resume after any number",
    async run(server) {
      const box = await server.box();
      await server.send(`/v1/sandboxes/${box}`, { method: "DELETE" });
      const all = await server.events("/v1/events?no_follow=true");
      const numbers = all.map(({ data }) => Number(data.seq));
      for (const [index, number] of numbers.entries()) same(number, numbers[0]! + index, "the next number");
      const middle = numbers[Math.floor(numbers.length / 2)]!;
      const rest = await server.events("/v1/events?no_follow=true", {
        headers: { "last-event-id": String(middle) },
      });
      same(Number(rest[0]!.data.seq), middle + 1, "the first after a number");
      const mine = await server.events(`/v1/events?no_follow=true&sandbox_id=${box}`);
      same(
        mine.map(({ data }) => data.type),
        ["sandbox.starting", "sandbox.ready", "sandbox.ended"],
        "a sandbox's life",
      );
      const some = await server.events(`/v1/events?no_follow=true&sandbox_id=${box}&types=sandbox.e`);
      same(
        some.map(({ data }) => data.type),
        ["sandbox.ended"],
        "by type",
      );
    },
  },
  {
    id: "streams.audit",
    must: "chain events by hash, and check the chain when asked",
    async run(server) {
      await server.box();
      const answer = await server.call("/v1/audit:verify");
      expect(answer.intact && Number(answer.checked) > 0, "an intact chain");
    },
  },
  {
    id: "streams.errors",
    must: "refuse a stream that cannot begin by an HTTP status, not by an event",
    async run(server) {
      await server.refuses("SANDBOX_NOT_FOUND", "/v1/sandboxes/sb_0000000000000000/processes/p1/events");
      const box = await server.shared();
      await server.refuses("PROCESS_NOT_FOUND", `/v1/sandboxes/${box}/processes/p999999/events`);
      await server.refuses("INVALID_INPUT", "/v1/events", { headers: { "last-event-id": "x" } });
    },
  },
];
