//go:build unix

package control

import (
	"encoding/gob"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
)

// Serve serves connections until the listener fails.
func Serve(l net.Listener) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go serveConn(conn)
	}
}

func serveConn(conn net.Conn) {
	defer conn.Close()
	var r request
	if gob.NewDecoder(conn).Decode(&r) != nil {
		return
	}
	s := &eventSender{encoder: gob.NewEncoder(conn)}
	last := event{Done: true}
	switch {
	case r.File != nil:
		if err := writeFile(r.File); err != nil {
			last.Err = err.Error()
		}
	case r.Command != nil && len(r.Command.Args) > 0:
		var err error
		if last.Code, err = runCommand(r.Command, s, conn); err != nil {
			last.Err = err.Error()
		}
	default:
		last.Err = "nothing to do: the request has neither a command nor a file"
	}
	s.send(last)
}

func writeFile(f *File) error {
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(f.Path, f.Data, f.Mode); err != nil {
		return err
	}
	return os.Chmod(f.Path, f.Mode) // in case the file existed
}

// runCommand runs a command to its end, or kills it when the connection closes.
func runCommand(c *Command, s *eventSender, conn io.Reader) (code int, err error) {
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Stdout = writerFunc(func(b []byte) error { return s.send(event{Stdout: b}) })
	cmd.Stderr = writerFunc(func(b []byte) error { return s.send(event{Stderr: b}) })
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // to kill its descendants, too
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	go func() {
		conn.Read(make([]byte, 1)) // the client sends no more data, so Read returns when the connection closes
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}()
	err = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// An eventSender serializes events of several goroutines.
type eventSender struct {
	mu      sync.Mutex
	encoder *gob.Encoder
}

func (s *eventSender) send(e event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.encoder.Encode(e)
}

// A writerFunc is an io.Writer that calls a function.
type writerFunc func([]byte) error

func (o writerFunc) Write(b []byte) (int, error) {
	if err := o(b); err != nil {
		return 0, err
	}
	return len(b), nil
}
