// Package control lets the lab run commands in its guest: a server there, a
// client here, one TCP connection for each command.
//
//	go control.Serve(listener)             // in the guest
//	c := control.Client{Addr: "198.51.100.2:22"}
//	p, err := c.Start(ctx, control.Command{Args: []string{"ip", "link"}}, os.Stdout, os.Stderr)
//	err = p.Wait()                         // nil, *ExitError, or a connection error
//
// When a connection closes, its command and the command's descendants are killed. The server has
// no authentication: every client can run commands, so it must run in a guest on a private
// network.
package control

import (
	"fmt"
	"io/fs"
)

// A Command is a command to run. Its stdin is empty.
type Command struct {
	Args []string // program, looked up in PATH, and its arguments
	Env  []string // "name=value", added to the server's environment
}

// A File is a file to write at the server.
type File struct {
	Path string
	Mode fs.FileMode
	Data []byte
}

// A request is the only message of a client. Exactly one of its fields is set.
type request struct {
	Command *Command
	File    *File
}

// An event is a message of the server. The last one has Done set.
type event struct {
	Stdout, Stderr []byte
	Done           bool
	Code           int    // with Done: exit status, or 128 plus the signal number
	Err            string // with Done: error of starting the command or writing the file
}

// An ExitError reports a command with an exit status other than 0.
type ExitError struct {
	Args []string
	Code int // exit status, or 128 plus the signal number
}

// Error returns the command and its status.
func (e *ExitError) Error() string {
	return fmt.Sprintf("%q ended with status %d", e.Args, e.Code)
}
