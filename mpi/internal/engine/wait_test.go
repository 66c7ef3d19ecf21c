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

// A brokenFabric is one whose connections fail when it flushes.
type brokenFabric struct {
	fabric.Fabric
	host fabric.Host
	fail []int // ranks that fail in the next Flush
}

var errBroken = errors.New("cable cut")

func (f *brokenFabric) Flush() {
	for _, rank := range f.fail {
		f.host.Core().FailPeer(rank, errBroken)
	}
	f.fail = nil
}

func (*brokenFabric) Poll() bool { return false }

func (*brokenFabric) Block(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestFlushFails checks that all goroutines that wait for ranks return when a flush before a wait
// finds that these have failed.
func TestFlushFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &brokenFabric{}
		e, err := engine.New(0, 4, func(h fabric.Host) (fabric.Fabric, error) {
			f.host = h
			return f, nil
		})
		require.NoError(t, err)
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
