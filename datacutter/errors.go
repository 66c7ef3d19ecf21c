package datacutter

import (
	"errors"
	"fmt"
	"strings"
)

// The errors of a run, in addition to those of filters, networks and contexts. They are wrapped; test with
// errors.Is.
var (
	ErrJob     = errors.New("datacutter: invalid job")      // the text names the field to change
	ErrTooLong = errors.New("datacutter: unit is too long") // for its stream
	ErrFrame   = errors.New("datacutter: bad frame")        // bytes that violate the protocol
)

// textPrefix begins the texts of this package's errors.
const textPrefix = "datacutter: "

// cause returns the text of err without the prefix, which the errors around it have.
func cause(err error) string { return strings.TrimPrefix(fmt.Sprint(err), textPrefix) }

// FilterError is the failure of an instance of a filter, or of its streams.
type FilterError struct {
	Instance Instance
	Err      error
}

// Error implements error.
func (e *FilterError) Error() string       { return textPrefix + e.abortReason() }
func (e *FilterError) abortReason() string { return e.Instance.String() + ": " + cause(e.Err) }

// Unwrap returns the cause.
func (e *FilterError) Unwrap() error { return e.Err }

// StreamError is the failure of a stream between the instance that reports it and its peer.
type StreamError struct {
	Stream string
	To     bool // the instance sends to the peer; otherwise it receives from it
	Peer   Instance
	Err    error
}

// Error implements error.
func (e *StreamError) Error() string {
	way := " from "
	if e.To {
		way = " to "
	}
	return "stream " + e.Stream + way + e.Peer.String() + ": " + cause(e.Err)
}

// Unwrap returns the cause.
func (e *StreamError) Unwrap() error { return e.Err }

// RemoteError is the reason for which another host aborted the run, or rejected a stream.
type RemoteError struct {
	Reason string
}

// Error implements error.
func (e *RemoteError) Error() string { return "aborted by peer: " + e.Reason }

// abortReason returns the reason to send to other hosts: the first failure, wherever it happened.
func abortReason(err error) string {
	var remote *RemoteError
	if errors.As(err, &remote) {
		return remote.Reason
	}
	var filter *FilterError
	if errors.As(err, &filter) {
		return filter.abortReason()
	}
	return cause(err)
}
