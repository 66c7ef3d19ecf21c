package rnicdebug_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/rnic/rnicdebug"
)

// A device with an endpoint on a TCP port, as SOFTRNIC_DEBUG=127.0.0.1:9479 opens it. Importing the
// package adds /metrics.
func Example() {
	dev, err := rnic.Open(rnic.Options{Debug: "127.0.0.1:0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()

	res, err := http.Get("http://" + dev.DebugAddr() + "/metrics")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	fmt.Println(res.StatusCode, strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain"))
	// Output: 200 true
}

// A program that serves metrics itself.
func ExampleNewCollector() {
	dev, err := rnic.Open(rnic.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	registry := prometheus.NewRegistry()
	fmt.Println(registry.Register(rnicdebug.NewCollector(dev)))
	// Output: <nil>
}
