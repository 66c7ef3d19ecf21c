// Package rnicdebug adds Prometheus metrics to the debug endpoint of a device,
// and captures compressed by zstd (names ending in .zst).
//
// With SOFTRNIC_DEBUG=auto in the environment, or rnic.Options.Debug, each device
// of a program has an endpoint for `softrnic stat`, captures and profiles, which
// uses only the standard library. To add /metrics and .zst, which link the
// Prometheus client and a compressor, import this package:
//
//	import _ "github.com/softrnic/softrnic/rnic/rnicdebug"
//
// A program with its own Prometheus registry registers its devices there:
//
//	prometheus.MustRegister(rnicdebug.NewCollector(dev))
//
// docs/observability.md describes the endpoint.
package rnicdebug

import (
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/softrnic/softrnic/internal/debug"
	"github.com/softrnic/softrnic/internal/link/capture"
	"github.com/softrnic/softrnic/rnic"
)

// NewCollector returns a collector of the counters of dev, a *[rnic.Device], for a program with its own
// registry. The metrics are those of the endpoint's /metrics.
//
// The counters of queue pairs are softrnic_<counter>_total with the labels
// device and qp: the number of a queue pair, as "0x11", or "closed" for all
// closed ones, so that a sum over qp never falls. The other metrics are
// described in /metrics itself.
func NewCollector(dev interface{ Inspect() rnic.Snapshot }) prometheus.Collector {
	return &collector{inspect: dev.Inspect}
}

// Every endpoint of a program that imports this package has /metrics, and its captures may be
// compressed by zstd.
func init() {
	capture.NewZstd = func(w io.Writer) (io.WriteCloser, error) {
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
	}
	debug.SetMetrics(func(dev debug.Device) http.Handler { return metricsHandler(dev.(inspector)) })
}

// An inspector is a device of package rnic.
type inspector interface{ Inspect() rnic.Snapshot }

// metricsHandler returns the handler of /metrics, with or without a series for
// each queue pair.
func metricsHandler(dev inspector) http.Handler {
	handler := func(o collectorOptions) http.Handler {
		reg := prometheus.NewRegistry()
		reg.MustRegister(&collector{dev.Inspect, o})
		return promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
	}
	each, sums := handler(collectorOptions{}), handler(collectorOptions{sumQPs: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		perQP := true
		if text := r.FormValue("per_qp"); text != "" {
			var err error
			if perQP, err = strconv.ParseBool(text); err != nil {
				http.Error(w, fmt.Sprintf("per_qp=%q: want true or false", text), http.StatusBadRequest)
				return
			}
		}
		if perQP {
			each.ServeHTTP(w, r)
		} else {
			sums.ServeHTTP(w, r)
		}
	})
}
