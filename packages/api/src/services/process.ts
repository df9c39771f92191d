import { ProcessService, type ServedService, serve } from "@caisson/contract";
import type { Engine } from "@caisson/sandbox";
import {
  checkCommand,
  checkKey,
  checkPosition,
  checkProcessId,
  checkSandboxId,
  checkWindow,
} from "./check.ts";
import { collectOutput } from "./output.ts";

export function processService(engine: Engine): ServedService {
  return serve(ProcessService, {
    async *exec(request, call) {
      const sandboxId = checkSandboxId(request.sandboxId);
      const key = { key: checkKey(request.idempotencyKey) };
      const process = await engine.start(sandboxId, checkCommand(request.command), key, call);
      const events = engine.attach(sandboxId, process.id, {
        from: 0n,
        follow: true,
        signal: call.signal,
        hold: true,
      });
      for await (const part of collectOutput(events)) yield { processId: process.id, ...part };
    },
    async *startProcess(request, call) {
      const sandboxId = checkSandboxId(request.sandboxId);
      const key = { key: checkKey(request.idempotencyKey) };
      const process = await engine.start(sandboxId, checkCommand(request.command), key, call);
      const events = engine.attach(sandboxId, process.id, {
        from: 0n,
        follow: true,
        signal: call.signal,
        hold: true,
      });
      for await (const event of events) yield { event };
    },
    async *attachProcess(request, call) {
      checkPosition(request.from, "from");
      const events = engine.attach(checkSandboxId(request.sandboxId), checkProcessId(request.processId), {
        from: request.from,
        follow: !request.noFollow,
        signal: call.signal,
      });
      for await (const event of events) yield { event };
    },
    async getProcess(request) {
      return {
        process: await engine.process(checkSandboxId(request.sandboxId), checkProcessId(request.processId)),
      };
    },
    async listProcesses(request) {
      return { processes: await engine.processes(checkSandboxId(request.sandboxId)) };
    },
    async writeStdin(request) {
      checkPosition(request.offset, "offset");
      const { offset, data, end } = request;
      const taken = await engine.writeStdin(
        checkSandboxId(request.sandboxId),
        checkProcessId(request.processId),
        { offset, data, end },
      );
      return { offset: taken };
    },
    async signalProcess(request, call) {
      await engine.signal(
        checkSandboxId(request.sandboxId),
        checkProcessId(request.processId),
        request.signal,
        call,
      );
      return {};
    },
    async resizeProcess(request) {
      const { columns, rows } = request;
      checkWindow(columns, rows);
      await engine.resize(
        checkSandboxId(request.sandboxId),
        checkProcessId(request.processId),
        columns,
        rows,
      );
      return {};
    },
    async waitProcess(request, call) {
      const sandboxId = checkSandboxId(request.sandboxId);
      return { process: await engine.wait(sandboxId, checkProcessId(request.processId), call.signal) };
    },
  });
}
