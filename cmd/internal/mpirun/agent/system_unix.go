//go:build unix

package agent

import (
	"os"
	"syscall"

	"github.com/softrnic/softrnic/cmd/internal/mpirun/frame"
)

// stopSignals are the signals that terminate an agent.
var stopSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE}

func isSIGPIPE(s os.Signal) bool { return s == syscall.SIGPIPE }

// exitInfo returns how a process has ended.
func exitInfo(s *os.ProcessState) frame.Exit {
	if s == nil {
		return frame.Exit{}
	}
	status, ok := s.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return frame.Exit{Status: s.ExitCode()}
	}
	return frame.Exit{Signal: int(status.Signal()), Name: status.Signal().String(), Core: status.CoreDump()}
}
