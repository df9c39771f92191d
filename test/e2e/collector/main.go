// A collector for tests: takes OTLP over HTTP as the OpenTelemetry collector does, by its own library, and
// prints what arrives, one JSON object per line. The first line is its address.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

type span struct {
	Span       string         `json:"span"`
	Service    any            `json:"service"`
	TraceID    string         `json:"trace_id"`
	SpanID     string         `json:"span_id"`
	ParentID   string         `json:"parent_id"`
	Kind       string         `json:"kind"`
	Status     string         `json:"status"`
	Message    string         `json:"message"`
	Attributes map[string]any `json:"attributes"`
}

type point struct {
	Metric string         `json:"metric"`
	Type   string         `json:"type"`
	Labels map[string]any `json:"labels"`
	Value  float64        `json:"value"`
}

// decoder is what both kinds of requests have.
type decoder interface {
	UnmarshalJSON([]byte) error
	UnmarshalProto([]byte) error
}

var lines sync.Mutex

func say(value any) {
	lines.Lock()
	defer lines.Unlock()
	if err := json.NewEncoder(os.Stdout).Encode(value); err != nil {
		os.Exit(1)
	}
}

// take decodes a body by its content type; false when it was refused.
func take(w http.ResponseWriter, r *http.Request, into decoder) bool {
	body, err := io.ReadAll(io.LimitReader(r.Body, 8<<20))
	if err == nil {
		if r.Header.Get("content-type") == "application/json" {
			err = into.UnmarshalJSON(body)
		} else {
			err = into.UnmarshalProto(body)
		}
	}
	if err != nil {
		say(map[string]string{"refused": err.Error()})
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	return err == nil
}

func traces(w http.ResponseWriter, r *http.Request) {
	request := ptraceotlp.NewExportRequest()
	if !take(w, r, request) {
		return
	}
	resources := request.Traces().ResourceSpans()
	for i := 0; i < resources.Len(); i++ {
		service, _ := resources.At(i).Resource().Attributes().Get("service.name")
		scopes := resources.At(i).ScopeSpans()
		for j := 0; j < scopes.Len(); j++ {
			spans := scopes.At(j).Spans()
			for k := 0; k < spans.Len(); k++ {
				s := spans.At(k)
				say(span{
					Span: s.Name(), Service: service.AsRaw(), TraceID: s.TraceID().String(), SpanID: s.SpanID().String(),
					ParentID: s.ParentSpanID().String(), Kind: s.Kind().String(), Status: s.Status().Code().String(),
					Message: s.Status().Message(), Attributes: s.Attributes().AsRaw(),
				})
			}
		}
	}
	fmt.Fprint(w, "{}")
}

func metrics(w http.ResponseWriter, r *http.Request) {
	request := pmetricotlp.NewExportRequest()
	if !take(w, r, request) {
		return
	}
	resources := request.Metrics().ResourceMetrics()
	for i := 0; i < resources.Len(); i++ {
		scopes := resources.At(i).ScopeMetrics()
		for j := 0; j < scopes.Len(); j++ {
			all := scopes.At(j).Metrics()
			for k := 0; k < all.Len(); k++ {
				numbers(all.At(k))
			}
		}
	}
	fmt.Fprint(w, "{}")
}

func numbers(m pmetric.Metric) {
	points := pmetric.NewNumberDataPointSlice()
	switch m.Type() {
	case pmetric.MetricTypeSum:
		points = m.Sum().DataPoints()
	case pmetric.MetricTypeGauge:
		points = m.Gauge().DataPoints()
	}
	for i := 0; i < points.Len(); i++ {
		p := points.At(i)
		value := p.DoubleValue()
		if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
			value = float64(p.IntValue())
		}
		say(point{Metric: m.Name(), Type: m.Type().String(), Labels: p.Attributes().AsRaw(), Value: value})
	}
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	say(map[string]string{"listening": "http://" + listener.Addr().String()})
	http.HandleFunc("POST /v1/traces", traces)
	http.HandleFunc("POST /v1/metrics", metrics)
	panic(http.Serve(listener, nil))
}
