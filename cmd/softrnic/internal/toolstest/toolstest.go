// Package toolstest has the test helpers of the tools.
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
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// HangTimeout is the time after which a test has failed.
const HangTimeout = time.Minute

// ServerTimeout returns a server's handshake timeout: short if a test expects a silent client to
// be dropped, and still long enough for the next one.
func ServerTimeout(silent bool) time.Duration {
	if silent {
		return 2 * time.Second
	}
	return HangTimeout
}

// Context returns a context that ends with the test, or after HangTimeout.
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

// Manager opens a device with a connection manager.
func Manager(t testing.TB) (verbs.Device, *cm.Manager) {
	t.Helper()
	dev := Device(t, rnic.Options{})
	m, err := cm.New(dev, cm.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { m.Close() })
	return dev, m
}

// Anywhere opens devices at the requested address, or on another UDP port there.
var Anywhere = rdmacm.DeviceSource{Open: func(at netip.AddrPort) (verbs.Device, error) {
	return rnic.Open(rnic.Options{Addr: at, AnyPort: true, Logger: slog.New(slog.DiscardHandler)})
}}

// A Buffer is output that a test reads while it is written.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (o *Buffer) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

// String returns the bytes written so far.
func (o *Buffer) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// A Barrier lets two sides wait for each other at the end, so that no acknowledgement is lost.
type Barrier struct {
	once [2]sync.Once
	here [2]chan struct{}
}

// NewBarrier returns a barrier of sides 0 and 1.
func NewBarrier() *Barrier {
	return &Barrier{here: [2]chan struct{}{make(chan struct{}), make(chan struct{})}}
}

// Arrive records that a side has reached the end.
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

// DroppedClients collects dropped clients.
type DroppedClients struct {
	errs chan error
}

// NewDroppedClients returns an empty collection.
func NewDroppedClients() *DroppedClients { return &DroppedClients{make(chan error, 1000)} }

// Add is a tool's Options.Dropped.
func (d *DroppedClients) Add(err error) { d.errs <- err }

// Next waits for the next dropped client.
func (d *DroppedClients) Next(t testing.TB) error {
	t.Helper()
	select {
	case err := <-d.errs:
		return err
	case <-time.After(HangTimeout):
		t.Fatal("no client was dropped")
		return nil
	}
}

// Len returns the number of clients not returned by Next.
func (d *DroppedClients) Len() int { return len(d.errs) }
