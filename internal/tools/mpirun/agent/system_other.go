//go:build !unix

package agent

import (
	"errors"
	"net"
	"os"

	"github.com/softrnic/softrnic/internal/tools/mpirun/frame"
)

// endings are the signals that end an agent.
var endings = []os.Signal{os.Interrupt}

func isPipe(os.Signal) bool { return false }

// socketPair says that sockets are not inherited here.
func socketPair() (net.Conn, *os.File, error) {
	return nil, nil, errors.New("sockets are not inherited on this system")
}

// how says how a process has ended.
func how(s *os.ProcessState) frame.Exit {
	if s == nil {
		return frame.Exit{}
	}
	return frame.Exit{Status: s.ExitCode()}
}
