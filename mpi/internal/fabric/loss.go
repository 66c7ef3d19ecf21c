package fabric

import (
	"errors"
	"log/slog"

	"github.com/softrnic/softrnic/verbs"
)

// Loss is why a rank is lost, in a few words.
type Loss struct {
	Reason string
	Err    error // the transport's own story
}

// Error implements error.
func (l *Loss) Error() string { return l.Reason }

// Unwrap returns the transport's story.
func (l *Loss) Unwrap() error { return l.Err }

// NewLoss makes few words of what a transport says of the loss of a rank, whose story of
// queue pairs and work requests goes to the debug log.
func NewLoss(rank int, err error) error {
	slog.Debug("mpi: a rank is lost", "rank", rank, "why", err)
	var refused *verbs.RefusedError
	var failed *verbs.CompletionError
	switch {
	case errors.As(err, &refused):
		return &Loss{refused.Error(), err}
	case errors.As(err, &failed) && failed.Status == verbs.WCRetryExcErr:
		return &Loss{"no answer", err}
	}
	return err
}
