package rnic

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/spelling"
)

// logLevels are the values of SOFTRNIC_LOG.
var logLevels = map[string]slog.Level{
	"error": slog.LevelError, "warn": slog.LevelWarn, "info": slog.LevelInfo, "debug": slog.LevelDebug,
}

// newLogger returns the logger of a device: that of the options, or of the
// environment, or else one that passes failures to the program's default
// logger.
func newLogger(o *Options) (*slog.Logger, error) {
	word := strings.ToLower(os.Getenv(EnvLog))
	level, known := logLevels[word]
	switch {
	case o.Logger != nil:
		return o.Logger, nil
	case word == "":
		return slog.New(&failureLog{logged: new(atomic.Int32)}), nil
	case word == "off":
		return slog.New(slog.DiscardHandler), nil
	case known:
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})), nil
	}
	return nil, fmt.Errorf("%q: want off, error, warn, info or debug%s", word, spelling.Hint(word, "off", "error", "warn", "info", "debug"))
}

// maxLoggedFailures bounds the failures of a device that reach the program's
// default logger. When a peer dies, thousands of queue pairs may fail at once.
const maxLoggedFailures = 16

// A failureLog passes warnings and errors to slog's default logger of the
// moment.
type failureLog struct {
	logged *atomic.Int32 // by the device
	with   []func(slog.Handler) slog.Handler
}

// Enabled implements slog.Handler.
func (f *failureLog) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && f.logged.Load() < maxLoggedFailures && slog.Default().Enabled(ctx, l)
}

// Handle implements slog.Handler.
func (f *failureLog) Handle(ctx context.Context, r slog.Record) error {
	n := f.logged.Add(1)
	if n > maxLoggedFailures {
		return nil
	}
	if n == maxLoggedFailures {
		r.Add("note", fmt.Sprintf("the device logs at most %d failures unless Options.Logger or %s is set", maxLoggedFailures, EnvLog))
	}
	h := slog.Default().Handler()
	for _, with := range f.with {
		h = with(h)
	}
	return h.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (f *failureLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return f.withHandlerFunc(func(h slog.Handler) slog.Handler { return h.WithAttrs(attrs) })
}

// WithGroup implements slog.Handler.
func (f *failureLog) WithGroup(name string) slog.Handler {
	return f.withHandlerFunc(func(h slog.Handler) slog.Handler { return h.WithGroup(name) })
}

func (f *failureLog) withHandlerFunc(with func(slog.Handler) slog.Handler) slog.Handler {
	return &failureLog{f.logged, append(f.with[:len(f.with):len(f.with)], with)}
}

// The deferredLogs are records made with locks held, whose handler runs when they
// are released: it belongs to the program, and may use the device or panic.
type deferredLogs struct {
	pending atomic.Bool // len(list) > 0
	mu      sync.Mutex
	list    []func(*slog.Logger)
}

// deferLog makes the next emitLogs call record. Locks of shards may be held.
func (d *Device) deferLog(record func(*slog.Logger)) {
	l := &d.logs
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, record)
	l.pending.Store(true)
}

// emitLogs passes the deferred records to the log. No lock is held, but perhaps
// the token. If the handler panics, the next call continues behind its record.
func (d *Device) emitLogs() {
	for d.logs.pending.Load() {
		if record := d.logs.pop(); record != nil {
			record(d.log)
		}
	}
}

func (l *deferredLogs) pop() (record func(*slog.Logger)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.list) > 0 {
		record, l.list = l.list[0], l.list[1:]
	}
	if len(l.list) == 0 {
		l.list = nil
		l.pending.Store(false)
	}
	return record
}
