// Package option has the error of an invalid option of a tool.
package option

import "fmt"

// An Error reports an invalid option. The command ends with the exit status of a usage error.
type Error struct {
	Option string // as on the command line: "-C"
	Reason string
}

// Error implements error.
func (e *Error) Error() string { return e.Option + ": " + e.Reason }

// Errorf returns an *Error with a formatted reason.
func Errorf(option, format string, args ...any) error {
	return &Error{option, fmt.Sprintf(format, args...)}
}
