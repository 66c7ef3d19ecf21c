//go:build unix

package agent

import (
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/internal/tools/mpirun/frame"
)

// endings are the signals that end an agent.
var endings = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE}

func isPipe(s os.Signal) bool { return s == syscall.SIGPIPE }

// socketPair makes the connection of a rank to its manager, and the rank's end.
func socketPair() (ours net.Conn, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	f := os.NewFile(uintptr(fds[0]), "manager")
	defer f.Close()
	theirs = os.NewFile(uintptr(fds[1]), "rank")
	if ours, err = net.FileConn(f); err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}

// how says how a process has ended.
func how(s *os.ProcessState) frame.Exit {
	if s == nil {
		return frame.Exit{}
	}
	status, ok := s.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return frame.Exit{Status: s.ExitCode()}
	}
	return frame.Exit{Signal: int(status.Signal()), Name: status.Signal().String(), Core: status.CoreDump()}
}
