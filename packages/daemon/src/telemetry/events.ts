import type { Store } from "@caisson/store";
import type { Metrics } from "./metrics.ts";

/** Counts what happens by following the log. Returns a function that stops it. */
export function followEvents(store: Store, metrics: Metrics): () => void {
  const abort = new AbortController();
  const drivers = new Map<string, string>();
  metrics.gauge("caisson_sandboxes", () => [...store.scan("sandbox")].length);
  const text = (value: unknown) => (typeof value === "string" ? value : "");
  void (async () => {
    const query = {
      from: store.head,
      types: ["sandbox.starting", "sandbox.ready", "sandbox.ended", "process.exited", "network."],
    };
    for await (const { type, data, sandboxId } of store.subscribe(query, abort.signal)) {
      if (type === "sandbox.starting") {
        drivers.set(sandboxId, text(data.driver));
      } else if (type === "sandbox.ready") {
        metrics.add("caisson_sandboxes_started_total", { driver: drivers.get(sandboxId) ?? "" });
      } else if (type === "sandbox.ended") {
        drivers.delete(sandboxId);
        metrics.add("caisson_sandboxes_ended_total", { reason: text(data.reason) });
      } else if (type.startsWith("network.")) {
        countNetwork(metrics, type, data);
      } else {
        metrics.add("caisson_processes_exited_total", { outcome: outcomeOf(data) });
      }
    }
  })().catch(() => {});
  return () => abort.abort();
}

/** Never by sandbox or name: those are without bound. */
function countNetwork(metrics: Metrics, type: string, data: Record<string, unknown>): void {
  if (type === "network.closed") {
    metrics.add("caisson_network_bytes_total", { direction: "sent" }, Number(data.sent ?? 0));
    metrics.add("caisson_network_bytes_total", { direction: "received" }, Number(data.received ?? 0));
  }
  const verdict = /^network\.(allowed|refused|failed)$/.exec(type)?.[1];
  if (verdict) metrics.add("caisson_network_connections_total", { verdict }, Number(data.count ?? 1));
}

function outcomeOf(data: Record<string, unknown>): string {
  if (data.lost) return "lost";
  if (data.timed_out) return "timed_out";
  if (data.oom_killed) return "oom_killed";
  if (data.disk_exceeded) return "disk_exceeded";
  return data.code === 0 ? "zero" : "non_zero";
}
