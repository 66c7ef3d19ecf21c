package debug

import (
	"os"
	"path/filepath"
	"time"

	"github.com/softrnic/softrnic/rnic"
)

// Report is what /stat answers: the device, and whose it is.
type Report struct {
	Process Process   `json:"process"`
	Time    time.Time `json:"time"`
	rnic.Snapshot
}

// Process is a process that has a device.
type Process struct {
	PID     int    `json:"pid"`
	Command string `json:"command"` // name of the program
}

// Device is what a server shows.
type Device interface {
	Inspect() rnic.Snapshot
	InspectQP(num uint32) (rnic.QPInfo, bool)
	StartCapture(path string) error
	StopCapture() error
}

var _ Device = (*rnic.Device)(nil)

// reportOf describes dev as a device of this process.
func reportOf(dev Device) Report {
	return Report{
		Process:  Process{PID: os.Getpid(), Command: filepath.Base(os.Args[0])},
		Time:     time.Now(),
		Snapshot: dev.Inspect(),
	}
}
