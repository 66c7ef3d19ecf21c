// Package toolstest is what the tests of the tools share.
//
//	meeting := toolstest.NewBarrier()
//	o.Device, o.Stay = toolstest.Device(t, rnic.Options{}), meeting.Stay(0)
//	s := toolstest.Serve(t, func(ctx context.Context, listening func(port int)) outcome {
//		o.Listening = listening
//		return run(ctx, o)
//	})
//	server, client := toolstest.RunPair(s, meeting, func() outcome { return run(toolstest.Context(t), to(s.At)) })
package toolstest

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// HangTimeout is a time after which a test has failed.
const HangTimeout = time.Minute

// ServerTimeout is a server's with a client that does not do its part: short where it is to be found
// silent, and still enough for the next one, which does its part.
func ServerTimeout(silent bool) time.Duration {
	if silent {
		return 2 * time.Second
	}
	return HangTimeout
}

// Context is a context that ends with the test, or when it hangs.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), HangTimeout)
	t.Cleanup(cancel)
	return ctx
}

// Device opens a device on the loopback interface for a test.
func Device(t testing.TB, o rnic.Options) verbs.Device {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler) // tests make queue pairs fail
	dev, err := rnic.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { dev.Close() })
	return dev
}

// Manager opens such a device with a manager of connections.
func Manager(t testing.TB) (verbs.Device, *cm.Manager) {
	t.Helper()
	dev := Device(t, rnic.Options{})
	m, err := cm.New(dev, cm.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { m.Close() })
	return dev, m
}

// Barrier is where two sides wait for each other at the end, so that no
// acknowledgement gets lost.
type Barrier struct {
	once [2]sync.Once
	here [2]chan struct{}
}

// NewBarrier makes a meeting of sides 0 and 1.
func NewBarrier() *Barrier {
	return &Barrier{here: [2]chan struct{}{make(chan struct{}), make(chan struct{})}}
}

// Arrive says that a side has come to the end.
func (m *Barrier) Arrive(side int) { m.once[side].Do(func() { close(m.here[side]) }) }

// Wait returns a function that arrives and waits for the other side.
func (m *Barrier) Wait(side int) func(context.Context) {
	return func(ctx context.Context) {
		m.Arrive(side)
		select {
		case <-m.here[1-side]:
		case <-ctx.Done():
		}
	}
}

// DroppedClients collects clients that were sent away.
type DroppedClients struct {
	errs chan error
}

// NewDroppedClients makes an empty collection.
func NewDroppedClients() *DroppedClients { return &DroppedClients{make(chan error, 1000)} }

// Add is the Dropped of a tool's options.
func (d *DroppedClients) Add(err error) { d.errs <- err }

// Next waits for the next one.
func (d *DroppedClients) Next(t testing.TB) error {
	t.Helper()
	select {
	case err := <-d.errs:
		return err
	case <-time.After(HangTimeout):
		t.Fatal("nobody was sent away")
		return nil
	}
}

// Len is how many were not looked at.
func (d *DroppedClients) Len() int { return len(d.errs) }
