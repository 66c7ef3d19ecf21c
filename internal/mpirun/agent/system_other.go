//go:build !unix

package agent

import (
	"os"

	"github.com/softrnic/softrnic/internal/mpirun/frame"
)

// endings are the signals that end an agent.
var endings = []os.Signal{os.Interrupt}

func isPipe(os.Signal) bool { return false }

// how says how a process has ended.
func how(s *os.ProcessState) frame.Exit {
	if s == nil {
		return frame.Exit{}
	}
	return frame.Exit{Status: s.ExitCode()}
}
