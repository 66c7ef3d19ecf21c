package verbs

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// Errors of calls, for errors.Is. They are wrapped in an *OpError with the object. The
// errno of libibverbs is in brackets.
var (
	ErrClosed       = errors.New("verbs: object is closed")                                                                                     // [EBADF]
	ErrBusy         = errors.New("verbs: object is in use by others; close those first")                                                        // [EBUSY]
	ErrInvalid      = errors.New("verbs: invalid argument")                                                                                     // [EINVAL]
	ErrState        = errors.New("verbs: not allowed in this queue pair state")                                                                 // [EINVAL]
	ErrUnsupported  = errors.New("verbs: not supported by this queue pair type")                                                                // [EOPNOTSUPP]
	ErrQueueFull    = errors.New("verbs: work queue is full; poll completions first or create a larger one")                                    // [ENOMEM]
	ErrLimit        = errors.New("verbs: beyond the limits of the device or of the queue pair")                                                 // [EINVAL]
	ErrNoMemory     = errors.New("verbs: the device has no more objects of this kind")                                                          // [ENOMEM]
	ErrDomain       = errors.New("verbs: object belongs to another protection domain or device")                                                // [EINVAL]
	ErrCQOverrun    = errors.New("verbs: completion queue overran and lost completions; close it with its queue pairs and create a deeper one") // CQ error state
	ErrFault        = fmt.Errorf("verbs: memory is not mapped or does not permit the access: %w", syscall.EFAULT)                               // [EFAULT]
	ErrNotConnected = errors.New("verbs: queue pair has no peer")                                                                               // [ENOTCONN]
)

// An OpError is the error of a call: the object, the operation, and the cause, in text as
// "verbs: QP 0x11: post send: work queue is full".
type OpError struct {
	Op     string // "post send", "modify QP", ...
	Object string // "QP 0x11", "CQ", "MR lkey 0x1200", or ""
	Detail string // advice, or ""
	Err    error  // one of the errors above, or the system's
}

// Error implements error.
func (e *OpError) Error() string {
	s := textPrefix
	if e.Object != "" {
		s += e.Object + ": "
	}
	s += e.Op + ": " + strings.TrimPrefix(fmt.Sprint(e.Err), textPrefix) // s has the prefix
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Unwrap returns Err.
func (e *OpError) Unwrap() error { return e.Err }

// textPrefix begins the texts of this package's errors.
const textPrefix = "verbs: "

// A TransitionError is the error of a Modify that the state table forbids.
type TransitionError struct {
	Type     QPType
	From, To QPState
	Legal    bool       // the transition exists, but the attributes are wrong
	Missing  QPAttrMask // required attributes that are missing
	Extra    QPAttrMask // attributes that the transition does not allow
}

// Error implements error.
func (e *TransitionError) Error() string {
	if !e.Legal {
		return fmt.Sprintf("%v queue pair cannot go from %v to %v", e.Type, e.From, e.To)
	}
	s := fmt.Sprintf("%v queue pair from %v to %v", e.Type, e.From, e.To)
	if e.Missing != 0 {
		s += fmt.Sprintf(" also needs %v", e.Missing)
	}
	if e.Extra != 0 {
		if e.Missing != 0 {
			s += " and"
		}
		s += fmt.Sprintf(" does not take %v", e.Extra)
	}
	return s
}

// Unwrap returns ErrInvalid.
func (e *TransitionError) Unwrap() error { return ErrInvalid }
