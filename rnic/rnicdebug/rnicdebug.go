// Package rnicdebug adds Prometheus to what a device shows of itself.
//
// A program need not do anything to be looked into: with SOFTRNIC_DEBUG=auto in
// its environment, or rnic.Options.Debug, each of its devices has an endpoint
// for `softrnic stat`, captures and profiles. That takes the standard library
// only. To have /metrics there as well, which links the Prometheus client, a
// program imports this package:
//
//	import _ "github.com/softrnic/softrnic/rnic/rnicdebug"
//
// A program that has a Prometheus registry of its own puts its devices there:
//
//	prometheus.MustRegister(rnicdebug.NewCollector(dev))
//
// docs/observability.md shows what is to be seen.
package rnicdebug

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/softrnic/softrnic/internal/debug"
	"github.com/softrnic/softrnic/rnic"
)

// NewCollector collects dev's counters for a program that has a registry of
// its own. The metrics are those of the endpoint's /metrics.
func NewCollector(dev *rnic.Device) prometheus.Collector {
	return debug.NewCollector(dev.Inspect, debug.CollectorOptions{})
}
