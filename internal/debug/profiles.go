package debug

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"time"
)

// addProfiles serves the profiles of net/http/pprof. Importing that package
// would also publish them on http.DefaultServeMux, which a program may serve to
// the public.
func addProfiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "profile ?seconds=30\ntrace ?seconds=1")
		for _, p := range pprof.Profiles() {
			fmt.Fprintf(w, "%s (%d) ?debug=1\n", p.Name(), p.Count())
		}
	})
	mux.HandleFunc("GET /debug/pprof/profile", timedProfile(30, pprof.StartCPUProfile, pprof.StopCPUProfile))
	mux.HandleFunc("GET /debug/pprof/trace", timedProfile(1, trace.Start, trace.Stop))
	mux.HandleFunc("GET /debug/pprof/{name}", func(w http.ResponseWriter, r *http.Request) {
		p := pprof.Lookup(r.PathValue("name"))
		if p == nil {
			http.Error(w, "no such profile; /debug/pprof/ lists them", http.StatusNotFound)
			return
		}
		level, _ := strconv.Atoi(r.FormValue("debug")) // as in net/http/pprof: 0 if not a number
		if level == 0 {
			w.Header().Set("Content-Type", "application/octet-stream")
		}
		_ = p.WriteTo(w, level) // fails only if the client has hung up
	})
}

// timedProfile serves a profile that runs for a number of seconds. Only one of
// each kind runs at a time in a process.
func timedProfile(defaultSeconds float64, start func(io.Writer) error, stop func()) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		seconds := defaultSeconds
		if text := r.FormValue("seconds"); text != "" {
			var err error
			if seconds, err = strconv.ParseFloat(text, 64); err != nil || !(seconds > 0 && seconds <= 3600) {
				http.Error(w, fmt.Sprintf("seconds=%q: want a number above 0, at most 3600", text), http.StatusBadRequest)
				return
			}
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		if err := start(w); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		defer stop()
		ctx, cancel := context.WithTimeout(r.Context(), time.Duration(seconds*float64(time.Second)))
		defer cancel()
		<-ctx.Done()
	}
}
