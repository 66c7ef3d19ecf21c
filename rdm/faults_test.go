package rdm_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/faulttest"
	"github.com/softrnic/softrnic/rdm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// faultWorld is an endpoint in which one goroutine leads and another follows, both in Recv.
type faultWorld struct {
	t      *testing.T
	dev    *rnic.Device
	e      *rdm.Endpoint
	sender *rdm.Peer // of a second endpoint, to e
	cancel [2]context.CancelFunc
	ended  [2]chan error
}

func (w *faultWorld) recv(ctx context.Context) error {
	_, _, err := w.e.Recv(ctx, make([]byte, 8))
	return err
}

// waitCounter is a context that tells when a wait has registered with it.
type waitCounter struct {
	context.Context
	waits atomic.Int32
}

func (c *waitCounter) Done() <-chan struct{} {
	c.waits.Add(1)
	return c.Context.Done()
}

func newFaultWorld(t *testing.T) *faultWorld {
	w := &faultWorld{t: t, dev: device(t, "")}
	w.e = endpointOn(t, w.dev, rdm.Options{Allow: func(at rdm.Addr) (verbs.AccessFlags, bool) {
		if at.ID == 666 {
			panic(faulttest.ErrPanic)
		}
		return verbs.AccessRemote, true
	}})
	w.sender = dial(t, endpoint(t, "", rdm.Options{}), w.e)
	for i := range w.ended {
		ctx := &waitCounter{}
		ctx.Context, w.cancel[i] = context.WithCancel(t.Context())
		w.ended[i] = make(chan error, 1)
		go func() { w.ended[i] <- w.recv(ctx) }()
		for ctx.waits.Load() == 0 {
			runtime.Gosched()
		}
	}
	return w
}

// rdmFaults are the faults, and what becomes of leader and follower: nil if they wait on.
var rdmFaults = map[string]func(w *faultWorld) (outcomes [2]error){
	"the leader's context ends": func(w *faultWorld) [2]error {
		w.cancel[0]()
		return [2]error{context.Canceled, nil}
	},
	"the follower's context ends": func(w *faultWorld) [2]error {
		w.cancel[1]()
		return [2]error{nil, context.Canceled}
	},
	"the context of another follower panics": func(w *faultWorld) [2]error {
		require.ErrorIs(w.t, faulttest.Recover(func() error { return w.recv(faulttest.Context{Context: w.t.Context()}) }), faulttest.ErrPanic)
		return [2]error{}
	},
	"the context of an operation panics": func(w *faultWorld) [2]error {
		peerDev := device(w.t, "")
		peer := endpointOn(w.t, peerDev, rdm.Options{})
		p := dial(w.t, w.e, peer)
		mine, theirs := region(w.t, w.e, 8, verbs.AccessLocalWrite), region(w.t, peer, 8, everything)
		require.NoError(w.t, peerDev.SetImpair("loss 100%")) // it stays outstanding
		var op rdm.Op
		require.NoError(w.t, p.Read(&op, mine.At(0, 8), theirs.Remote(0)))
		require.ErrorIs(w.t, faulttest.Recover(func() error { return op.Wait(faulttest.Context{Context: w.t.Context()}) }), faulttest.ErrPanic)
		require.NoError(w.t, peerDev.SetImpair(""))
		require.NoError(w.t, op.Wait(guarded(w.t)))
		return [2]error{}
	},
	"Allow panics": func(w *faultWorld) [2]error {
		other := endpoint(w.t, "", rdm.Options{ID: 666})
		require.ErrorIs(w.t, faulttest.Recover(func() error { _, err := w.e.Dial(w.t.Context(), other.Addr()); return err }), faulttest.ErrPanic)
		return [2]error{}
	},
	"the endpoint closes": func(w *faultWorld) [2]error {
		require.NoError(w.t, w.e.Close())
		return [2]error{rdm.ErrClosed, rdm.ErrClosed}
	},
	"the device closes": func(w *faultWorld) [2]error {
		require.NoError(w.t, w.dev.Close())
		return [2]error{verbs.ErrClosed, verbs.ErrClosed}
	},
}

// TestFaults injects each fault while a goroutine leads and another follows. Those that it concerns
// return its error, the others get the messages that come later, and none is lost.
func TestFaults(t *testing.T) {
	for name, inject := range rdmFaults {
		t.Run(name, func(t *testing.T) {
			w := newFaultWorld(t)
			outcomes := inject(w)
			waiting := 0
			for i, want := range outcomes {
				if want == nil {
					waiting++
				} else {
					require.ErrorIs(t, <-w.ended[i], want)
				}
			}
			if outcomes[0] == outcomes[1] && waiting == 0 {
				require.ErrorIs(t, w.recv(t.Context()), outcomes[0])
				return
			}
			for range waiting + 1 {
				require.NoError(t, w.sender.Send(guarded(t), []byte("x")))
			}
			for i, want := range outcomes {
				if want == nil {
					require.NoError(t, <-w.ended[i])
				}
			}
			require.NoError(t, w.recv(guarded(t)))
		})
	}
}

// TestContextOfLeaderPanics checks that a panic in the context of the only waiter, which leads,
// releases the endpoint and loses no message.
func TestContextOfLeaderPanics(t *testing.T) {
	a, b := endpoint(t, "", rdm.Options{}), endpoint(t, "", rdm.Options{})
	p := dial(t, b, a)
	recv := func(ctx context.Context) error {
		_, _, err := a.Recv(ctx, make([]byte, 8))
		return err
	}
	require.ErrorIs(t, faulttest.Recover(func() error { return recv(faulttest.Context{Context: t.Context()}) }), faulttest.ErrPanic)
	require.NoError(t, p.Send(guarded(t), []byte("x")))
	require.NoError(t, recv(guarded(t)))
}
