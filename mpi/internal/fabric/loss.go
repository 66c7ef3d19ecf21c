package fabric

import (
	"errors"
	"log/slog"

	"github.com/softrnic/softrnic/verbs"
)

// A LossError is the cause of a rank's failure in a few words.
type LossError struct {
	Reason string
	Err    error // details from the transport
}

// Error implements error.
func (l *LossError) Error() string { return l.Reason }

// Unwrap returns the error of the transport.
func (l *LossError) Unwrap() error { return l.Err }

// WrapLoss summarizes the transport's error about a failed rank. The details, with
// queue pairs and work requests, go to the debug log.
func WrapLoss(rank int, err error) error {
	slog.Debug("mpi: rank lost", "rank", rank, "cause", err)
	var refused *verbs.RefusedError
	var failed *verbs.CompletionError
	switch {
	case errors.As(err, &refused):
		return &LossError{refused.Error(), err}
	case errors.As(err, &failed) && failed.Status == verbs.WCRetryExcErr:
		return &LossError{"no reply", err}
	}
	return err
}
