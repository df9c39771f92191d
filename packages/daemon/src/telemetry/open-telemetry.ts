// Sends spans and metrics to an OpenTelemetry collector. Loaded only when OTEL_EXPORTER_OTLP_ENDPOINT is set.

import { formatTraceparent, parseTraceparent } from "@caisson/contract";
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-http";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { BatchSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import type { BeginSpan } from "./instrument.ts";
import type { Metrics } from "./metrics.ts";

export interface OpenTelemetry {
  beginSpan: BeginSpan;
  close(): Promise<void>;
}

export function openTelemetry(metrics: Metrics, version: string): OpenTelemetry {
  const resource = resourceFromAttributes({ "service.name": "caisson", "service.version": version });
  const tracing = new TracerProvider({
    resource,
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
  });
  const metering = new MeterProvider({
    resource,
    readers: [new PeriodicExportingMetricReader({ exporter: new OTLPMetricExporter() })],
  });
  const register = observe(metering, metrics);
  const tracer = tracing.getTracer("caisson", version);
  return {
    beginSpan(name, traceparent) {
      const parent = parentOf(traceparent);
      const context = parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT;
      const span = tracer.startSpan(name, { kind: SpanKind.SERVER }, context);
      const { traceId, spanId, traceFlags } = span.spanContext();
      return {
        traceparent: formatTraceparent({ traceId, spanId, sampled: (traceFlags & 1) === 1 }),
        end({ error, attributes }) {
          span.setAttributes(attributes);
          if (error) span.setStatus({ code: SpanStatusCode.ERROR, message: error.code });
          span.end();
        },
      };
    },
    async close() {
      register();
      await Promise.allSettled([tracing.shutdown(), metering.shutdown()]);
    },
  };
}

/** Hands our own numbers to the meter each time it collects. Returns what takes in new ones. */
function observe(provider: MeterProvider, metrics: Metrics): () => void {
  const meter = provider.getMeter("caisson");
  const known = new Set<string>();
  const register = () => {
    for (const { name, kind } of metrics.readings()) {
      if (known.has(name)) continue;
      known.add(name);
      const instrument =
        kind === "gauge" ? meter.createObservableGauge(name) : meter.createObservableCounter(name);
      instrument.addCallback((result) => {
        for (const reading of metrics.readings()) {
          if (reading.name === name) result.observe(reading.value, reading.labels);
        }
      });
    }
  };
  register();
  // Series appear with the first call of their kind.
  setInterval(register, 10_000).unref();
  return register;
}

function parentOf(traceparent: string | undefined) {
  const parsed = traceparent === undefined ? undefined : parseTraceparent(traceparent);
  if (!parsed) return undefined;
  const { traceId, spanId, sampled } = parsed;
  return { traceId, spanId, traceFlags: sampled ? 1 : 0, isRemote: true };
}
