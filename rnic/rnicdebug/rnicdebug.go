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
	"github.com/prometheus/client_golang/prometheus"

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
