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
