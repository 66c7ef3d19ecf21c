package control

import (
	"fmt"
	"io/fs"
)

// Command is what to run. Stdin is empty.
type Command struct {
	Args []string // program, found by PATH, and its arguments
	Env  []string // "name=value", added to the server's own
}

// File is what to write at the server's.
type File struct {
	Path string
	Mode fs.FileMode
	Data []byte
}

// request is the first and only message of a client: one of the two.
type request struct {
	Command *Command
	File    *File
}

// event is a message of the server. The last one has Done.
type event struct {
	Stdout, Stderr []byte
	Done           bool
	Code           int    // of Done: exit status; 128 and the signal's number if one ended it
	Err            string // of Done: why the command could not be run or the file not be written
}

// ExitError tells of a command that ended with another status than 0.
type ExitError struct {
	Args []string
	Code int // 128 and the signal's number if a signal ended it
}

// Error names the command and its status.
func (e *ExitError) Error() string {
	return fmt.Sprintf("%q ended with status %d", e.Args, e.Code)
}
