package ud

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rdm"
	"github.com/softrnic/softrnic/rnic"
)

// listener is a rank that records its events.
type listener struct {
	sync.Mutex
	met     map[int]bool
	signals []uint32
	done    bool
}

func (l *listener) DoLocked(f func()) {
	l.Lock()
	defer l.Unlock()
	f()
}
func (l *listener) PeerFound(rank int, _ []byte)   { l.met[rank] = true }
func (l *listener) PeerLost(int, error)            {}
func (l *listener) HandleSignal(_ int, imm uint32) { l.signals = append(l.signals, imm) }
func (l *listener) OpDone(*fabric.Op, error)       { l.done = true }

// TestForgedSignals sends messages from a process that is not a rank of the job. It can neither forge signals
// of a rank nor block signals by malformed messages.
func TestForgedSignals(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	device := func() *rnic.Device {
		dev, err := rnic.Open(rnic.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, dev.Close()) })
		return dev
	}
	managers := pmi.NewLocal(2)
	var nets [2]*Net
	var hosts [2]*listener
	for i := range nets {
		var err error
		hosts[i] = &listener{met: map[int]bool{}}
		nets[i], err = New(device(), hosts[i], managers[i], Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, nets[i].Close(ctx)) })
		require.NoError(t, nets[i].Start(nil))
	}
	go managers[1].Fence(ctx)
	require.NoError(t, managers[0].Fence(ctx))
	until := func(ready func() bool) {
		for there := false; !there; {
			for i, n := range nets {
				hosts[i].DoLocked(func() { n.Poll() })
			}
			hosts[0].DoLocked(func() { hosts[1].DoLocked(func() { there = ready() }) })
			require.NoError(t, ctx.Err())
		}
	}
	for i, n := range nets {
		hosts[i].DoLocked(func() { n.Connect(1 - i) })
	}
	until(func() bool { return hosts[0].met[1] && hosts[1].met[0] })

	stranger, err := rdm.Open(device(), rdm.Options{})
	require.NoError(t, err)
	defer stranger.Close()
	p, err := stranger.Dial(ctx, nets[0].e.Addr())
	require.NoError(t, err)
	for _, b := range [][]byte{make([]byte, 100), {0, 0, 0, 1, 6, 6, 6, 6}, {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}, {1, 2}} {
		require.NoError(t, p.Send(ctx, b))
	}
	until(func() bool { return nets[0].stats.stray == 4 })
	hosts[1].DoLocked(func() { nets[1].Post(0, &fabric.Op{Kind: fabric.Put, Signal: true, Imm: 5, Owner: hosts[1]}) })
	until(func() bool { return len(hosts[0].signals) > 0 && hosts[1].done })
	require.Equal(t, []uint32{5}, hosts[0].signals)

	// The same for a rank that blocks.
	require.NoError(t, p.Send(ctx, make([]byte, 100)))
	require.NoError(t, nets[0].Block(ctx, nil))
	until(func() bool { return nets[0].stats.stray == 5 })
}
