import { rules } from "./rules.ts";

/** Names of spans. */
export const spans = rules.telemetry.spans;

/** A key that spans may carry. */
export type AttributeKey = (typeof rules.telemetry.attributes)[number];

export type Attributes = Partial<Record<AttributeKey, string | number | boolean>>;

const notOnMetrics: ReadonlySet<string> = new Set(rules.telemetry.never_metric_labels);

/** What of these attributes may label a metric: nothing that names one of unboundedly many things. */
export function metricLabels(attributes: Attributes): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([key]) => !notOnMetrics.has(key)));
}

/** A W3C trace context: who asked, for whoever continues the trace. */
export interface TraceContext {
  traceId: string;
  spanId: string;
  sampled: boolean;
}

const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** Reads a `traceparent`; undefined for what the standard calls invalid. */
export function parseTraceparent(header: string): TraceContext | undefined {
  const match = header.length <= 256 ? form.exec(header) : null;
  if (match === null) return undefined;
  const [, version, traceId, spanId, flags, more] = match as unknown as [
    string,
    string,
    string,
    string,
    string,
    string?,
  ];
  if (version === "ff" || (version === "00" && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** Reads `retry.attempt_header`; undefined for the first attempt and for nonsense. */
export function parseAttempt(header: string | undefined): number | undefined {
  if (header === undefined || !/^[0-9]{1,4}$/.test(header)) return undefined;
  const number = Number(header);
  return number > 1 ? number : undefined;
}

export function formatTraceparent(context: TraceContext): string {
  return `00-${context.traceId}-${context.spanId}-${context.sampled ? "01" : "00"}`;
}
