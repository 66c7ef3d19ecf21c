package endpoint

import (
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// Device is what a server shows. What Stat and QP return is written as JSON.
type Device interface {
	Stat() any
	QP(num uint32) (info any, ok bool) // ok if there is such a queue pair
	StartCapture(path string) error
	StopCapture() error
}

// About says whose a report is, and when it was made. It is embedded in what
// Device.Stat returns.
type About struct {
	Process Process   `json:"process"`
	Time    time.Time `json:"time"`
}

// Process is a process that has a device.
type Process struct {
	PID     int    `json:"pid"`
	Command string `json:"command"` // name of the program
}

// AboutSelf is About for a report that this process makes now.
func AboutSelf() About {
	return About{Process{PID: os.Getpid(), Command: filepath.Base(os.Args[0])}, time.Now()}
}

// metricsHandler makes the handler of /metrics, or is nil.
var metricsHandler func(Device) http.Handler

// SetMetrics gives the servers of this program a handler of /metrics. It is
// called from an init function of a package that brings a metrics library.
func SetMetrics(handler func(Device) http.Handler) { metricsHandler = handler }

// serveNoMetrics answers for /metrics in a program without a metrics library.
func serveNoMetrics(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, `this program has no metrics for Prometheus in it: add import _ "github.com/softrnic/softrnic/rnic/rnicdebug"; or use /stat`,
		http.StatusNotImplemented)
}
