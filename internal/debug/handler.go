package debug

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
)

// indexText is the response of /.
const indexText = `softrnic debug endpoint
/stat                 the device, its counters, queue pairs and completion queues, as JSON
/qp/{number}/history  a queue pair with its last packets and state transitions, as JSON
/capture              POST ?path=/absolute.pcapng captures until DELETE or hang-up (Unix sockets only)
/debug/pprof/         profiles of the process
/metrics              counters for Prometheus, if the program imports rnicdebug; ?per_qp=false sums queue pairs up
`

// newHandler returns the handler of dev for an endpoint of the network, "unix"
// or "tcp".
func newHandler(dev Device, network string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, indexText) })
	mux.HandleFunc("GET /stat", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, dev.Stat()) })
	mux.HandleFunc("GET /qp/{number}/history", func(w http.ResponseWriter, r *http.Request) { serveHistory(w, r, dev) })
	if metricsHandler != nil {
		mux.Handle("GET /metrics", metricsHandler(dev))
	} else {
		mux.HandleFunc("GET /metrics", serveNoMetrics)
	}
	addProfiles(mux)
	addCapture(mux, dev, network)
	if network == "tcp" {
		return localOnly(mux)
	}
	return mux
}

func serveHistory(w http.ResponseWriter, r *http.Request, dev Device) {
	num, err := ParseQPN(r.PathValue("number"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	info, ok := dev.QP(num)
	if !ok {
		http.Error(w, fmt.Sprintf("QP 0x%x: no such queue pair; possibly closed", num), http.StatusNotFound)
		return
	}
	writeJSON(w, info)
}

// FormatQPN formats a queue pair number as in messages: "0x11".
func FormatQPN(n uint32) string { return fmt.Sprintf("0x%x", n) }

// ParseQPN parses a queue pair number, decimal or hexadecimal after 0x.
func ParseQPN(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 0, 24)
	if err != nil {
		return 0, fmt.Errorf("queue pair number %q: want a number of 24 bits such as 17 or 0x11", s)
	}
	return uint32(n), nil
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // fails only if the client has hung up
}

// localOnly rejects requests whose Host is not a loopback address: they come
// from a web page whose name was made to resolve to 127.0.0.1 (DNS rebinding).
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopbackHost(r.Host) {
			http.Error(w, fmt.Sprintf("host %q: use localhost or a loopback address", r.Host), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLoopbackHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
