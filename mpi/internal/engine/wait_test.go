package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// A brokenFabric is one whose connections fail when it flushes, or that fails as a whole.
type brokenFabric struct {
	fabric.Fabric
	host   fabric.Host
	fail   []int // ranks that fail in the next Flush
	failed error // of Block
	blocks int
}

var errBroken = errors.New("cable cut")

func (f *brokenFabric) Flush() {
	for _, rank := range f.fail {
		f.host.Core().FailPeer(rank, errBroken)
	}
	f.fail = nil
}

func (*brokenFabric) Poll() bool { return false }

func (f *brokenFabric) Block(ctx context.Context) error {
	if f.blocks++; f.failed != nil {
		return f.failed
	}
	<-ctx.Done()
	return ctx.Err()
}

func (f *brokenFabric) newEngine(t *testing.T) *engine.Engine {
	e, err := engine.New(0, 4, func(h fabric.Host) (fabric.Fabric, error) {
		f.host = h
		return f, nil
	})
	require.NoError(t, err)
	return e
}

// TestFabricFails checks that a wait for a message of the own rank goes on without the fabric, and
// does not poll it in a loop.
func TestFabricFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &brokenFabric{failed: errBroken}
		e := f.newEngine(t)
		in := &protocol.Request{Envelope: match.Envelope{Source: 0, Tag: 5}}
		require.NoError(t, e.Receive(in))
		ended := make(chan error, 1)
		go func() { ended <- e.Wait(t.Context(), in) }()
		synctest.Wait() // never returns if the goroutine does not block
		require.Empty(t, ended)
		require.Equal(t, 1, f.blocks)
		require.NoError(t, e.Send(&protocol.Request{Envelope: match.Envelope{Tag: 5}}))
		require.NoError(t, <-ended)
	})
}

// TestFlushFails checks that all goroutines that wait for ranks return when a flush before a wait
// finds that these have failed.
func TestFlushFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &brokenFabric{}
		e := f.newEngine(t)
		ended := make(chan error, 3)
		wait := func(rank int32) {
			r := &protocol.Request{Envelope: match.Envelope{Source: rank, Tag: match.Any}}
			require.NoError(t, e.Receive(r))
			go func() { ended <- errors.Join(e.Wait(t.Context(), r), r.Err) }()
			synctest.Wait()
		}
		wait(1) // leads
		wait(2) // follows
		require.Empty(t, ended)
		f.fail = []int{1, 2, 3}
		wait(3)
		require.Len(t, ended, 3)
		for range 3 {
			require.ErrorIs(t, <-ended, errBroken)
		}
	})
}
