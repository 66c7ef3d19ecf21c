package sdp_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
	"github.com/softrnic/softrnic/verbs"
)

// faultTime is the time within which a call returns after a fault.
const faultTime = 20 * time.Second

// A faultWorld is a connection in which both directions of end b are about to wait.
type faultWorld struct {
	*ends
	t    *testing.T
	a, b *sdp.Conn
}

// newFaultWorld returns a connection and calls prepare, unless it is nil.
func newFaultWorld(t *testing.T, o sdp.Options, prepare func(w *faultWorld)) *faultWorld {
	w := &faultWorld{t: t, ends: newEnds(t, rnic.Options{}, o)}
	w.a, w.b = w.dial(t)
	if prepare != nil {
		prepare(w)
	}
	return w
}

// start runs a call in a goroutine of its own.
func start(call func() error) <-chan error {
	end := make(chan error, 1)
	go func() { end <- call() }()
	return end
}

// result returns the error of a call.
func result(t *testing.T, call string, end <-chan error) error {
	t.Helper()
	select {
	case err := <-end:
		return err
	case <-time.After(faultTime):
		t.Fatalf("%s does not return", call)
		return nil
	}
}

// checkGoroutines checks, after everything of the test is closed, that no goroutine remains.
func checkGoroutines(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

func (w *faultWorld) read(n int) error {
	_, err := w.b.Read(make([]byte, n))
	return err
}

func (w *faultWorld) write(n int) error {
	_, err := w.b.Write(make([]byte, n))
	return err
}

// lendMemory makes the Reads of b offer their memory, by an exchange without a copy.
func (w *faultWorld) lendMemory() {
	sent := start(func() error { _, err := w.a.Write(make([]byte, 1<<20)); return err })
	_, err := io.ReadFull(w.b, make([]byte, 1<<20))
	require.NoError(w.t, err)
	require.NoError(w.t, result(w.t, "Write of the peer", sent))
}

// faultCalls are the calls that wait when a fault comes: the first one leads, the second follows.
// An offered Write is read from the memory of the program, and an offering Read is written to it.
var faultCalls = map[string]struct {
	zeroCopy int // of the options
	prepare  func(w *faultWorld)
	calls    [2]func(w *faultWorld) error
	reads    [2]bool
}{
	"Read": {-1, nil, [2]func(w *faultWorld) error{
		func(w *faultWorld) error { return w.read(8) },
		func(w *faultWorld) error { return w.write(32 << 20) },
	}, [2]bool{true, false}},
	"Write": {-1, nil, [2]func(w *faultWorld) error{
		func(w *faultWorld) error { return w.write(32 << 20) },
		func(w *faultWorld) error { return w.read(8) },
	}, [2]bool{false, true}},
	"offered Write": {20_000, nil, [2]func(w *faultWorld) error{
		func(w *faultWorld) error { return w.write(1 << 20) },
		func(w *faultWorld) error { return w.read(8) },
	}, [2]bool{false, true}},
	"offering Read": {20_000, (*faultWorld).lendMemory, [2]func(w *faultWorld) error{
		func(w *faultWorld) error { return w.read(1 << 20) },
		func(w *faultWorld) error { return w.write(32 << 20) },
	}, [2]bool{true, false}},
}

// connFaults are the faults, and the errors of which the waiting calls return one.
var connFaults = map[string]struct {
	inject func(w *faultWorld) error
	want   []error
}{
	"Close":             {func(w *faultWorld) error { return w.b.Close() }, []error{net.ErrClosed}},
	"the deadline":      {func(w *faultWorld) error { return w.b.SetDeadline(time.Now().Add(time.Millisecond)) }, []error{os.ErrDeadlineExceeded}},
	"the stack closes":  {func(w *faultWorld) error { return w.ends.b.Close() }, []error{net.ErrClosed}},
	"the device closes": {func(w *faultWorld) error { return w.dev.Close() }, []error{verbs.ErrClosed, sdp.ErrReset}},
	"the peer closes":   {func(w *faultWorld) error { return w.ends.a.Close() }, []error{sdp.ErrReset, sdp.ErrAborted}},
	"the peer aborts":   {func(w *faultWorld) error { return errors.Join(w.a.SetLinger(0), w.a.Close()) }, []error{sdp.ErrReset, sdp.ErrAborted}},
}

// TestFaults injects each fault while one call leads and another follows, in each kind of wait.
// Both return an error that tells the cause, and no goroutine remains.
func TestFaults(t *testing.T) {
	for call, c := range faultCalls {
		for fault, f := range connFaults {
			t.Run(call+", "+fault, func(t *testing.T) {
				eachFlowControl(t, func(t *testing.T, o sdp.Options) {
					checkGoroutines(t)
					o.ZeroCopy, o.OfferTime = c.zeroCopy, hang
					w := newFaultWorld(t, o, c.prepare)
					var ended [2]<-chan error
					for i, call := range c.calls {
						ended[i] = start(func() error { return call(w) })
						w.awaitLeader()
					}
					require.NoError(t, f.inject(w))
					for _, end := range ended {
						requireOneOf(t, result(t, call, end), f.want)
					}
				})
			})
		}
	}
}

// awaitLeader returns when a call of b leads.
func (w *faultWorld) awaitLeader() {
	for began := time.Now(); ; runtime.Gosched() {
		if _, leads := w.b.Heard(); leads {
			return
		}
		require.Less(w.t, time.Since(began), hang)
	}
}

func requireOneOf(t *testing.T, err error, want []error) {
	t.Helper()
	for _, w := range want {
		if errors.Is(err, w) {
			return
		}
	}
	require.Fail(t, "other error", "%v, want one of %v", err, want)
}

// TestDeadlinesOfWaits ends the wait of one direction at any moment by its deadline, often, while a
// call of the other direction waits, which gets its data afterwards.
func TestDeadlinesOfWaits(t *testing.T) {
	for call, c := range faultCalls {
		t.Run(call, func(t *testing.T) {
			eachFlowControl(t, func(t *testing.T, o sdp.Options) {
				checkGoroutines(t)
				o.ZeroCopy, o.OfferTime = c.zeroCopy, hang
				w := newFaultWorld(t, o, c.prepare)
				set := [2]func(time.Time) error{w.b.SetWriteDeadline, w.b.SetReadDeadline}
				if c.reads[0] {
					set[0], set[1] = set[1], set[0]
				}
				second := start(func() error { return c.calls[1](w) })
				seed := rand.Uint64()
				t.Logf("seed %d", seed)
				r := rand.New(rand.NewPCG(seed, 0))
				for range 30 {
					require.NoError(t, set[0](time.Now().Add(time.Duration(r.IntN(1000))*time.Microsecond)))
					first := start(func() error { return c.calls[0](w) })
					require.ErrorIs(t, result(t, call, first), os.ErrDeadlineExceeded)
				}
				peer := start(func() error {
					if c.reads[1] {
						_, err := w.a.Write(make([]byte, 8))
						return err
					}
					_, err := io.CopyN(io.Discard, w.a, 32<<20)
					return err
				})
				require.NoError(t, result(t, "the other call", second))
				if !c.reads[1] {
					require.NoError(t, w.b.CloseWrite()) // with RDMA flow control the rest leaves in a later call
				}
				require.NoError(t, result(t, "the peer", peer))
			})
		})
	}
}

// TestFaultsOfAccept injects each fault while a call of Accept waits.
func TestFaultsOfAccept(t *testing.T) {
	for name, f := range map[string]struct {
		inject func(e *ends) error
		want   []error
	}{
		"Close":             {func(e *ends) error { return e.l.Close() }, []error{net.ErrClosed}},
		"the deadline":      {func(e *ends) error { return e.l.SetDeadline(time.Now().Add(time.Millisecond)) }, []error{os.ErrDeadlineExceeded}},
		"the stack closes":  {func(e *ends) error { return e.b.Close() }, []error{net.ErrClosed}},
		"the device closes": {func(e *ends) error { return e.dev.Close() }, []error{cm.ErrClosed, verbs.ErrClosed}},
	} {
		t.Run(name, func(t *testing.T) {
			checkGoroutines(t)
			e := newEnds(t, rnic.Options{}, sdp.Options{})
			end := start(func() error { _, err := e.l.Accept(); return err })
			require.NoError(t, f.inject(e))
			requireOneOf(t, result(t, "Accept", end), f.want)
		})
	}
}

// TestFaultsOfDial injects each fault while Dial waits for a reply that does not come.
func TestFaultsOfDial(t *testing.T) {
	for name, f := range map[string]struct {
		inject func(dev verbs.Device, s *sdp.Stack, cancel context.CancelFunc) error
		want   []error
	}{
		"the context":       {func(_ verbs.Device, _ *sdp.Stack, cancel context.CancelFunc) error { cancel(); return nil }, []error{context.Canceled}},
		"the stack closes":  {func(_ verbs.Device, s *sdp.Stack, _ context.CancelFunc) error { return s.Close() }, []error{net.ErrClosed}},
		"the device closes": {func(dev verbs.Device, _ *sdp.Stack, _ context.CancelFunc) error { return dev.Close() }, []error{cm.ErrClosed, verbs.ErrClosed}},
	} {
		t.Run(name, func(t *testing.T) {
			checkGoroutines(t)
			e := newEnds(t, rnic.Options{}, sdp.Options{})
			require.NoError(t, e.dev.SetImpair("loss 100%"))
			dev := device(t, rnic.Options{})
			s, err := sdp.New(dev, sdp.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			end := start(func() error {
				_, err := s.DialAddr(ctx, e.addr(), sdp.Dialer{UDPPort: e.port})
				return err
			})
			require.NoError(t, f.inject(dev, s, cancel))
			requireOneOf(t, result(t, "Dial", end), f.want)
		})
	}
}
