//go:build linux

package uverbs

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/verbs"
)

// opError returns the error of a call: the error of package verbs that belongs to the kernel's, with
// the kernel's error and advice. An *verbs.OpError and the errors of package verbs remain.
func opError(op, object string, err error) error {
	var done *verbs.OpError
	if err == nil || errors.As(err, &done) {
		return err
	}
	e := &verbs.OpError{Op: op, Object: object, Err: err}
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return e
	}
	wrap := func(sentinel error) error { return fmt.Errorf("%w: kernel: %w", sentinel, err) }
	switch errno {
	case unix.EINVAL, unix.ERANGE, unix.ENOENT:
		e.Err = wrap(verbs.ErrInvalid)
	case unix.EBUSY:
		e.Err = wrap(verbs.ErrBusy)
	case unix.ENOMEM:
		e.Err = wrap(verbs.ErrNoMemory)
	case unix.EFAULT:
		e.Err = verbs.ErrFault // wraps EFAULT
	case unix.EOPNOTSUPP, unix.ENOSYS:
		e.Err = wrap(verbs.ErrUnsupported)
	case unix.EIO, unix.ENODEV:
		e.Err = wrap(verbs.ErrClosed)
		e.Detail = "the kernel has removed the device; close it and open it again"
	case unix.EACCES:
		e.Detail = "the process has changed its user or capabilities since it opened the device; open it after the change"
	}
	return e
}

// limitError returns the error of a size beyond a limit.
func limitError[N int | uint64](op, object, name string, have, limit N) error {
	return &verbs.OpError{Op: op, Object: object, Err: verbs.ErrLimit, Detail: fmt.Sprintf("%s is %d: want 0 to %d", name, have, limit)}
}

// invalidError returns the error of an invalid argument.
func invalidError(op, object, format string, args ...any) error {
	return &verbs.OpError{Op: op, Object: object, Err: verbs.ErrInvalid, Detail: fmt.Sprintf(format, args...)}
}

// closedError returns the error of a call on a closed object.
func closedError(op, object string) error {
	return &verbs.OpError{Op: op, Object: object, Err: verbs.ErrClosed}
}
