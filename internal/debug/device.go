package debug

import (
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// A Device is the device that a server exposes. The results of Stat and QP are
// encoded as JSON.
type Device interface {
	Stat() any
	QP(num uint32) (info any, ok bool) // ok reports whether the queue pair exists
	StartCapture(path string) error
	StopCapture() error
}

// About names the process of a report and the time of the report. It is
// embedded in the result of Device.Stat.
type About struct {
	Process Process   `json:"process"`
	Time    time.Time `json:"time"`
}

// A Process is a process with a device.
type Process struct {
	PID     int    `json:"pid"`
	Command string `json:"command"` // name of the program
}

// AboutSelf returns the About of this process at this time.
func AboutSelf() About {
	return About{Process{PID: os.Getpid(), Command: filepath.Base(os.Args[0])}, time.Now()}
}

// metricsHandler creates the handler of /metrics; nil without a metrics
// library.
var metricsHandler func(Device) http.Handler

// SetMetrics sets the handler of /metrics for the servers of this program. It
// is called from an init function of a package that links a metrics library.
func SetMetrics(handler func(Device) http.Handler) { metricsHandler = handler }

// serveNoMetrics serves /metrics in a program without a metrics library.
func serveNoMetrics(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, `this program has no metrics for Prometheus in it: add import _ "github.com/softrnic/softrnic/rnic/rnicdebug"; or use /stat`,
		http.StatusNotImplemented)
}
