// Counters, gauges and histograms of the daemon. Labels are few and bounded: never an id or a path.

type Labels = Record<string, string>;

interface Family {
  help: string;
  kind: "counter" | "gauge" | "histogram";
}

const families = {
  caisson_calls_total: { kind: "counter", help: "Calls by method and outcome." },
  caisson_call_seconds: { kind: "histogram", help: "Duration of calls by method." },
  caisson_sandboxes_started_total: {
    kind: "counter",
    help: "Sandboxes that became ready, by driver.",
  },
  caisson_sandboxes_ended_total: { kind: "counter", help: "Sandboxes that ended, by reason." },
  caisson_sandboxes: { kind: "gauge", help: "Sandboxes alive." },
  caisson_processes_exited_total: { kind: "counter", help: "Commands that exited, by outcome." },
  caisson_network_connections_total: {
    kind: "counter",
    help: "Connections of sandboxes to the outside, by verdict.",
  },
  caisson_network_bytes_total: {
    kind: "counter",
    help: "Bytes over connections of sandboxes that are over, by direction.",
  },
  caisson_log_events: { kind: "gauge", help: "Number of the latest event." },
  caisson_memory_bytes: { kind: "gauge", help: "Resident memory of the daemon." },
} as const satisfies Record<string, Family>;

export type MetricName = keyof typeof families;

/** Upper bounds in seconds. */
const buckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60];

interface Series {
  labels: Labels;
  value: number;
  counts?: number[];
  count: number;
}

export class Metrics {
  readonly #series = new Map<MetricName, Map<string, Series>>();
  readonly #gauges = new Map<MetricName, () => number>();

  add(name: MetricName, labels: Labels, value = 1): void {
    this.#find(name, labels).value += value;
  }

  observe(name: MetricName, labels: Labels, seconds: number): void {
    const series = this.#find(name, labels);
    series.counts ??= buckets.map(() => 0);
    const bucket = buckets.findIndex((bound) => seconds <= bound);
    if (bucket >= 0) series.counts[bucket]!++;
    series.value += seconds;
    series.count++;
  }

  /** A value that is read when it is asked for. */
  gauge(name: MetricName, read: () => number): void {
    this.#gauges.set(name, read);
  }

  /** Every number there is, flat: histograms as their sum and count. */
  *readings(): Generator<{ name: string; kind: "counter" | "gauge"; labels: Labels; value: number }> {
    for (const [name, read] of this.#gauges) yield { name, kind: "gauge", labels: {}, value: read() };
    for (const [name, all] of this.#series) {
      for (const { labels, value, counts, count } of all.values()) {
        if (counts === undefined) yield { name, kind: "counter", labels, value };
        else {
          yield { name: `${name}_sum`, kind: "counter", labels, value };
          yield { name: `${name}_count`, kind: "counter", labels, value: count };
        }
      }
    }
  }

  /** In Prometheus' text format. */
  text(): string {
    const lines: string[] = [];
    for (const [name, family] of Object.entries(families) as [MetricName, Family][]) {
      lines.push(`# HELP ${name} ${family.help}`, `# TYPE ${name} ${family.kind}`);
      const read = this.#gauges.get(name);
      if (read) lines.push(`${name} ${read()}`);
      for (const series of this.#series.get(name)?.values() ?? []) lines.push(...seriesLines(name, series));
    }
    return `${lines.join("\n")}\n`;
  }

  #find(name: MetricName, labels: Labels): Series {
    const all = this.#series.get(name) ?? new Map<string, Series>();
    this.#series.set(name, all);
    const key = Object.values(labels).join("\0");
    const series = all.get(key) ?? { labels, value: 0, count: 0 };
    all.set(key, series);
    return series;
  }
}

function seriesLines(name: string, { labels, value, counts, count }: Series): string[] {
  if (counts === undefined) return [`${name}${labelText(labels)} ${value}`];
  let sum = 0;
  const lines = buckets.map((bound, i) => {
    sum += counts[i]!;
    return `${name}_bucket${labelText({ ...labels, le: String(bound) })} ${sum}`;
  });
  lines.push(`${name}_bucket${labelText({ ...labels, le: "+Inf" })} ${count}`);
  lines.push(`${name}_sum${labelText(labels)} ${value}`, `${name}_count${labelText(labels)} ${count}`);
  return lines;
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(
    ([key, value]) => `${key}="${value.replace(/[\\"\n]/g, (c) => (c === "\n" ? "\\n" : `\\${c}`))}"`,
  );
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}
