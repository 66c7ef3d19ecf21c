package debug

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// errInUse reports that a process already serves the socket.
var errInUse = errors.New("a live process serves it; choose another path or \"auto\"")

// listenAddress opens the endpoint. The listener removes a Unix socket when it
// is closed.
func listenAddress(addr string) (net.Listener, Address, error) {
	if addr == Auto {
		return listenAuto()
	}
	a, err := ParseAddress(addr)
	if err != nil {
		return nil, a, err
	}
	var l net.Listener
	if a.Network == "unix" {
		l, err = listenUnix(a.Target)
	} else {
		l, err = net.Listen(a.Network, a.Target)
	}
	if err != nil {
		return nil, a, fmt.Errorf("debug endpoint %v: %w", a, err)
	}
	if a.Network == "tcp" {
		a.Target = l.Addr().String() // with the port chosen by the system
	}
	return l, a, nil
}

// listenAuto listens at the first free name of this process, which has a socket
// for each device it serves.
func listenAuto() (net.Listener, Address, error) {
	dir, err := makeRuntimeDir()
	if err != nil {
		return nil, Address{}, err
	}
	removeEnded(dir)
	for n := 0; ; n++ {
		a, err := unixAddress(filepath.Join(dir, socketName(os.Getpid(), n)))
		if err != nil {
			return nil, a, err
		}
		l, err := listenUnix(a.Target)
		switch {
		case err == nil:
			return l, a, nil
		case !errors.Is(err, errInUse):
			return nil, a, fmt.Errorf("debug endpoint %v: %w", a, err)
		}
	}
}

// removeEnded removes the sockets that killed processes left. A process that runs may have bound its
// socket and not listen yet, so that a refused connection alone does not show its end.
func removeEnded(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if pid, ok := socketPID(e.Name()); ok && hasEnded(pid) {
			_ = removeStale(filepath.Join(dir, e.Name())) // the next process tries again
		}
	}
}

// listenUnix listens on a socket that only the user may connect to. It removes
// a stale socket of an ended process.
func listenUnix(path string) (net.Listener, error) {
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// removeStale removes a socket without a listener.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s exists and is not a socket; choose another path", path)
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		c.Close()
		return errInUse
	}
	if !IsRefused(err) {
		return err
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// IsRefused reports whether a socket exists but has no listener.
func IsRefused(err error) bool {
	const windows = syscall.Errno(10061) // WSAECONNREFUSED
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, windows)
}

// socketName returns the name of a process's n-th socket; socketPID parses it.
func socketName(pid, n int) string { return fmt.Sprintf("%d-%d.sock", pid, n) }

func socketPID(name string) (pid int, ok bool) {
	number, _, _ := strings.Cut(name, "-")
	pid, err := strconv.Atoi(number)
	return pid, err == nil && pid > 0 && strings.HasSuffix(name, ".sock")
}
