// Package toolstest is what the tests of the tools share.
//
//	meeting := toolstest.NewMeeting()
//	o.Device, o.Stay = toolstest.Device(t, rnic.Options{}), meeting.Stay(0)
//	s := toolstest.Serve(t, func(ctx context.Context, listening func(port int)) outcome {
//		o.Listening = listening
//		return run(ctx, o)
//	})
//	server, client := toolstest.Play(s, meeting, func() outcome { return run(toolstest.Soon(t), to(s.At)) })
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

// Hang is a time after which a test has failed.
const Hang = time.Minute

// Patience is a server's with a client that does not do its part: short where it is to be found
// silent, and still enough for the next one, which does its part.
func Patience(silent bool) time.Duration {
	if silent {
		return 2 * time.Second
	}
	return Hang
}

// Soon is a context that ends with the test, or when it hangs.
func Soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), Hang)
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

// Meeting is where two sides wait for each other at the end, so that no
// acknowledgement gets lost.
type Meeting struct {
	once [2]sync.Once
	here [2]chan struct{}
}

// NewMeeting makes a meeting of sides 0 and 1.
func NewMeeting() *Meeting {
	return &Meeting{here: [2]chan struct{}{make(chan struct{}), make(chan struct{})}}
}

// Arrive says that a side has come to the end.
func (m *Meeting) Arrive(side int) { m.once[side].Do(func() { close(m.here[side]) }) }

// Stay returns a function that arrives and waits for the other side.
func (m *Meeting) Stay(side int) func(context.Context) {
	return func(ctx context.Context) {
		m.Arrive(side)
		select {
		case <-m.here[1-side]:
		case <-ctx.Done():
		}
	}
}

// Drops collects clients that were sent away.
type Drops struct {
	errs chan error
}

// NewDrops makes an empty collection.
func NewDrops() *Drops { return &Drops{make(chan error, 1000)} }

// Add is the Dropped of a tool's options.
func (d *Drops) Add(err error) { d.errs <- err }

// Next waits for the next one.
func (d *Drops) Next(t testing.TB) error {
	t.Helper()
	select {
	case err := <-d.errs:
		return err
	case <-time.After(Hang):
		t.Fatal("nobody was sent away")
		return nil
	}
}

// Len is how many were not looked at.
func (d *Drops) Len() int { return len(d.errs) }
