import { PortService, type ServedService, serve } from "@caisson/contract";
import type { Engine } from "@caisson/sandbox";
import { checkForwardId, checkPort, checkSandboxId, invalid } from "./check.ts";

const maxWaitMs = 600_000;

export function portService({ ports }: Engine): ServedService {
  return serve(PortService, {
    async listPorts({ sandboxId }) {
      return { ports: await ports.list(checkSandboxId(sandboxId)) };
    },
    async waitForPort({ sandboxId, port, timeoutMs }, call) {
      if (timeoutMs > maxWaitMs) throw invalid(`\`timeout_ms\` may be at most ${maxWaitMs}`);
      const wanted = { port: checkPort(port, "port"), timeoutMs };
      return { port: await ports.wait(checkSandboxId(sandboxId), wanted, call) };
    },
    async *forwardPort({ sandboxId, port, hostPort, kind, detach }, call) {
      checkPort(port, "port");
      if (hostPort !== 0) checkPort(hostPort, "host_port");
      if (kind > 2) throw invalid("`kind` is none that this server knows");
      const request = { port, hostPort, kind, detach };
      for await (const forward of ports.forward(checkSandboxId(sandboxId), request, call)) yield { forward };
    },
    async listForwards({ sandboxId }) {
      return { forwards: await ports.forwards(checkSandboxId(sandboxId)) };
    },
    async closeForward({ sandboxId, forwardId }, call) {
      await ports.close(checkSandboxId(sandboxId), checkForwardId(forwardId), call);
      return {};
    },
    async *connectPort(requests, call) {
      const iterator = requests[Symbol.asyncIterator]();
      const { value: first } = await iterator.next();
      if (first === undefined) throw invalid("the first message must name the port");
      const port = checkPort(first.port, "port");
      const stream = await ports.connect(checkSandboxId(first.sandboxId), port, call);
      const abort = () => stream.destroy();
      call.signal.addEventListener("abort", abort, { once: true });
      try {
        if (first.data.length > 0) stream.write(first.data);
        void (async () => {
          for (;;) {
            const { done, value } = await iterator.next();
            if (done) break;
            if (value.data.length > 0 && !stream.write(value.data)) await drained(stream);
          }
          stream.end();
        })().catch(() => stream.destroy());
        for await (const data of stream) yield { data };
      } finally {
        call.signal.removeEventListener("abort", abort);
        stream.destroy();
      }
    },
  });
}

function drained(stream: NodeJS.EventEmitter): Promise<void> {
  return new Promise((resolve) => {
    stream.once("drain", resolve);
    stream.once("close", resolve);
  });
}
