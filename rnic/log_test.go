package rnic

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// logBuffer is a buffer that is safe for concurrent use.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) Len() int { return len(l.String()) }

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// programLog makes a buffer the program's default logger.
func programLog(t *testing.T) *logBuffer {
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	l := new(logBuffer)
	slog.SetDefault(slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug})))
	return l
}

// fail makes a queue pair of a fail by a forbidden write.
func fail(t *testing.T, a, b *end) {
	t.Helper()
	a.post(t, verbs.SendWR{Opcode: verbs.WRRDMAWrite, SGList: []verbs.SGE{a.mr.SGE(0, 8)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey() + 1})
	require.Equal(t, verbs.WCRemAccessErr, a.next(t).Status)
}

// TestLogDefault checks that an error reported by a completion is not logged as well.
func TestLogDefault(t *testing.T) {
	t.Setenv(EnvLog, "")
	l := programLog(t)
	a, b := pair(t, Options{})
	fail(t, a, b)
	require.Empty(t, l.String())
}

// TestLogDefaultWarning checks that an error that no call returns goes to the current default
// logger.
func TestLogDefaultWarning(t *testing.T) {
	t.Setenv(EnvLog, "")
	early := programLog(t)
	a, _ := pair(t, Options{})
	late := programLog(t)
	a.dev.log.Warn("capture failed")
	require.Empty(t, early.String())
	require.Contains(t, late.String(), "level=WARN msg=\"capture failed\"")
}

// TestLogManyFailures checks that the last of many entries has a note on how to see the others.
func TestLogManyFailures(t *testing.T) {
	t.Setenv(EnvLog, "")
	l := programLog(t)
	log, err := newLogger(new(Options))
	require.NoError(t, err)
	for range 3 * maxLoggedFailures {
		log.With("device", "nic").WithGroup("g").Warn("failed", "qp", 7)
	}
	lines := strings.Split(strings.TrimSpace(l.String()), "\n")
	require.Len(t, lines, maxLoggedFailures)
	require.Contains(t, lines[0], "msg=failed device=nic g.qp=7")
	require.NotContains(t, lines[0], "note")
	require.Contains(t, lines[maxLoggedFailures-1], "logs at most 16 failures unless Options.Logger or SOFTRNIC_LOG is set")
}

// TestLogEnvironment checks that the level of the variable selects the entries on stderr.
func TestLogEnvironment(t *testing.T) {
	for level, want := range map[string][]string{
		"off": nil, "error": nil,
		"warn":  nil,
		"info":  {"device open", "device open", "device closed", "device closed"},
		"debug": {"device open", "device open", "asynchronous event", "queue pair failed", "device closed", "device closed"},
	} {
		t.Run(level, func(t *testing.T) {
			t.Setenv(EnvLog, level)
			unused := programLog(t)
			r, w, err := os.Pipe()
			require.NoError(t, err)
			defer r.Close()
			stderr := os.Stderr
			os.Stderr = w
			a, b := pair(t, Options{})
			os.Stderr = stderr
			fail(t, a, b)
			require.NoError(t, a.dev.Close())
			require.NoError(t, b.dev.Close())
			require.NoError(t, w.Close())
			var text bytes.Buffer
			_, err = text.ReadFrom(r)
			require.NoError(t, err)
			for _, msg := range want {
				require.Contains(t, text.String(), msg)
			}
			if want == nil {
				require.Empty(t, text.String())
			}
			if level == "debug" {
				require.Regexp(t, `history=".*state RTS;.*-> RC_WRITE_ONLY psn \d+;.*NAK remote access error; .*"`, text.String())
			} else {
				require.Equal(t, len(want), strings.Count(text.String(), "\n"), text.String())
			}
			require.Empty(t, unused.String())
		})
	}
	logger := slog.New(slog.DiscardHandler)
	t.Setenv(EnvLog, "loud")
	got, err := newLogger(&Options{Logger: logger})
	require.NoError(t, err)
	require.Same(t, logger, got, "what the program says goes first")
}
