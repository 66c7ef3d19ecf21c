package cmdline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// An Interrupt is the cause of a context that a signal has ended. errors.Is matches it with
// context.Canceled.
type Interrupt struct{ Signal os.Signal }

// Error implements error.
func (i *Interrupt) Error() string { return fmt.Sprintf("ended by a signal (%v)", i.Signal) }

// Is implements the interface of errors.Is.
func (i *Interrupt) Is(target error) bool { return target == context.Canceled }

// FailureStatus returns the exit status of a command that has failed: status, or, if a
// signal has ended ctx, 128 and the number of the signal, as of a process that the signal
// itself has ended.
func FailureStatus(ctx context.Context, status int) int {
	var i *Interrupt
	if errors.As(context.Cause(ctx), &i) {
		if s, ok := i.Signal.(syscall.Signal); ok {
			return 128 + int(s)
		}
	}
	return status
}

// NotifyContext returns a context that SIGINT or SIGTERM ends, with an *Interrupt as its
// cause. A second signal ends the process. The caller must call stop.
func NotifyContext(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(&Interrupt{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(context.Canceled)
	}
}
