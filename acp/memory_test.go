package acp_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
	"github.com/softrnic/softrnic/acp/internal/protocol"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// alone is the process manager of the only running rank of a large job.
type alone struct {
	pmi.Manager
	size int
}

func (a alone) Size() int                 { return a.size }
func (alone) Fence(context.Context) error { return nil }

// TestTables checks that a rank of a job of a million ranks needs at most the paper's 176 bytes for each of
// them (table I), and at most its 2 MB in addition.
func TestTables(t *testing.T) {
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	takes := func(size int) float64 {
		dev, err := rnic.Open(rnic.Options{})
		require.NoError(t, err)
		before := heap()
		p, err := acp.Init(func() (verbs.Device, error) { return dev, nil }, acp.Options{Manager: alone{pmi.NewLocal(1)[0], size}})
		require.NoError(t, err)
		defer p.Close()
		return heap() - before
	}
	small, large := takes(1), takes(protocol.MaxRanks)
	each := (large - small) / (protocol.MaxRanks - 1)
	t.Logf("%.1f bytes for each rank, and %.0f besides", each, small)
	require.LessOrEqual(t, each, 176.0)
	require.LessOrEqual(t, small, 2e6)
}

// TestChannelMemory checks that channel ends need at most the paper's memory (tables II and III).
func TestChannelMemory(t *testing.T) {
	require.NoError(t, acptest.Run(1, func(p *acp.Process) error {
		for _, size := range []int{16, 4096, 64 << 10} {
			for _, slots := range []int{1, 2, 4, 8} {
				o := acp.ChannelOptions{SlotSize: size, Slots: slots}
				recv, err := p.NewChannel(0, 0, o)
				require.NoError(t, err)
				send, err := p.NewChannel(0, 0, o)
				require.NoError(t, err)
				if have, most := send.Memory(), 168+16*slots+slots*size; have > most {
					return fmt.Errorf("a sender with %d slots of %d bytes takes %d, not %d", slots, size, have, most)
				}
				if have, most := recv.Memory(), 160+slots*size; have > most {
					return fmt.Errorf("a receiver with %d slots of %d bytes takes %d, not %d", slots, size, have, most)
				}
			}
		}
		return nil
	}))
}
