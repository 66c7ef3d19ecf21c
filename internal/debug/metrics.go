package debug

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/softrnic/softrnic/internal/debug/endpoint"
	"github.com/softrnic/softrnic/rnic"
)

// Every endpoint of a program that has this package has /metrics.
func init() {
	endpoint.SetMetrics(func(dev endpoint.Device) http.Handler { return metricsHandler(dev.(inspector)) })
}

// An inspector is a device of package rnic.
type inspector interface{ Inspect() rnic.Snapshot }

// metricsHandler returns the handler of /metrics, with or without a series for
// each queue pair.
func metricsHandler(dev inspector) http.Handler {
	handler := func(o CollectorOptions) http.Handler {
		reg := prometheus.NewRegistry()
		reg.MustRegister(NewCollector(dev.Inspect, o))
		return promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
	}
	each, sums := handler(CollectorOptions{}), handler(CollectorOptions{SumQPs: true})
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
