//go:build !unix

package agent

import (
	"os"

	"github.com/softrnic/softrnic/cmd/internal/mpirun/frame"
)

// stopSignals are the signals that terminate an agent.
var stopSignals = []os.Signal{os.Interrupt}

func isSIGPIPE(os.Signal) bool { return false }

// exitInfo returns how a process has ended.
func exitInfo(s *os.ProcessState) frame.Exit {
	if s == nil {
		return frame.Exit{}
	}
	return frame.Exit{Status: s.ExitCode()}
}
