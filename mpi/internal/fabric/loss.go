package fabric

import (
	"errors"
	"log/slog"

	"github.com/softrnic/softrnic/verbs"
)

// LossError is why a rank is lost, in a few words.
type LossError struct {
	Reason string
	Err    error // the transport's own story
}

// Error implements error.
func (l *LossError) Error() string { return l.Reason }

// Unwrap returns the transport's story.
func (l *LossError) Unwrap() error { return l.Err }

// WrapLoss makes few words of what a transport says of the loss of a rank, whose story of
// queue pairs and work requests goes to the debug log.
func WrapLoss(rank int, err error) error {
	slog.Debug("mpi: a rank is lost", "rank", rank, "why", err)
	var refused *verbs.RefusedError
	var failed *verbs.CompletionError
	switch {
	case errors.As(err, &refused):
		return &LossError{refused.Error(), err}
	case errors.As(err, &failed) && failed.Status == verbs.WCRetryExcErr:
		return &LossError{"no answer", err}
	}
	return err
}
