package acp_test

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
)

// TestAtomics runs each operation in each width on another rank's memory and on local memory.
func TestAtomics(t *testing.T) {
	const a, b = 0xf0f0f0f0f0f0f0f1, 0x3c3c3c3c3c3c3c3d
	lo := func(x uint64) uint32 { return uint32(x) }
	require.NoError(t, acptest.Run(2, func(p *acp.Process) error {
		mem := make([]byte, 64)
		_, all, err := share(p, mem)
		if err != nil || p.Rank() == 1 {
			return err
		}
		for rank, ga := range all {
			eight := func(h func(old *uint64) acp.Handle) (old uint64) {
				require.NoError(t, p.Complete(ctx, h(&old)), "rank %d", rank)
				return old
			}
			four := func(h func(old *uint32) acp.Handle) (old uint32) {
				require.NoError(t, p.Complete(ctx, h(&old)), "rank %d", rank)
				return old
			}
			require.Zero(t, eight(func(o *uint64) acp.Handle { return acp.Swap[uint64](p, o, ga, a, acp.None) }))
			require.EqualValues(t, uint64(a), eight(func(o *uint64) acp.Handle { return acp.CompareSwap[uint64](p, o, ga, 5, 6, acp.None) }))
			require.EqualValues(t, uint64(a), eight(func(o *uint64) acp.Handle { return acp.CompareSwap[uint64](p, o, ga, a, b, acp.None) }))
			require.EqualValues(t, uint64(b), eight(func(o *uint64) acp.Handle { return acp.FetchXor[uint64](p, o, ga, a, acp.None) }))
			require.EqualValues(t, uint64(a^b), eight(func(o *uint64) acp.Handle { return acp.FetchOr[uint64](p, o, ga, 0xff, acp.None) }))
			require.EqualValues(t, uint64(a^b|0xff), eight(func(o *uint64) acp.Handle { return acp.FetchAnd[uint64](p, o, ga, 0xffff, acp.None) }))
			require.EqualValues(t, uint64((a^b|0xff)&0xffff), eight(func(o *uint64) acp.Handle { return acp.FetchAdd[uint64](p, o, ga, ^uint64(0), acp.None) }))
			require.EqualValues(t, uint64((a^b|0xff)&0xffff)-1, eight(func(o *uint64) acp.Handle {
				return acp.Swap[uint64](p, nil, ga, 0, acp.Swap[uint64](p, o, ga, 0, acp.None))
			}))
			for off := 0; off < 8; off += 4 {
				at := ga.Add(off)
				require.Zero(t, four(func(o *uint32) acp.Handle { return acp.Swap[uint32](p, o, at, lo(a), acp.None) }))
				require.EqualValues(t, lo(a), four(func(o *uint32) acp.Handle { return acp.CompareSwap[uint32](p, o, at, 5, 6, acp.None) }))
				require.EqualValues(t, lo(a), four(func(o *uint32) acp.Handle { return acp.CompareSwap[uint32](p, o, at, lo(a), lo(b), acp.None) }))
				require.EqualValues(t, lo(b), four(func(o *uint32) acp.Handle { return acp.FetchXor[uint32](p, o, at, lo(a), acp.None) }))
				require.EqualValues(t, lo(a^b), four(func(o *uint32) acp.Handle { return acp.FetchOr[uint32](p, o, at, 0xff, acp.None) }))
				require.EqualValues(t, lo(a^b|0xff), four(func(o *uint32) acp.Handle { return acp.FetchAnd[uint32](p, o, at, 0xffff, acp.None) }))
				require.EqualValues(t, lo((a^b|0xff)&0xffff), four(func(o *uint32) acp.Handle { return acp.FetchAdd[uint32](p, o, at, ^uint32(0)-5, acp.None) }))
				require.Equal(t, lo((a^b|0xff)&0xffff)-6, four(func(o *uint32) acp.Handle { return acp.Swap[uint32](p, o, at, 0, acp.None) }))
			}
		}
		return nil
	}))
}

// TestAtomicity has all ranks, and the owner's program, change the two halves of one word by all operations
// concurrently. No change may be lost.
func TestAtomicity(t *testing.T) {
	const ranks, each = 3, 60
	require.NoError(t, acptest.Run(ranks, func(p *acp.Process) error {
		mem := make([]byte, 16)
		mine, all, err := share(p, mem)
		require.NoError(t, err)
		low, high := all[0], all[0].Add(4)
		if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
			low, high = high, low
		}
		for i := range each {
			acp.FetchAdd[uint32](p, nil, low, 1, acp.None)
			acp.FetchAdd[uint64](p, nil, all[0], 1, acp.None)
			acp.FetchAdd[uint32](p, nil, high, 1, acp.None)
			bit := uint64(1) << (10*p.Rank() + i%10)
			acp.FetchXor[uint64](p, nil, all[0].Add(8), bit, acp.None)
			if p.Rank() == 0 {
				atomic.AddUint64((*uint64)(unsafe.Pointer(&mem[0])), 1)
			}
		}
		require.NoError(t, p.Complete(ctx, acp.All))
		require.NoError(t, p.Sync(ctx))
		if p.Rank() > 0 {
			return p.Sync(ctx)
		}
		w := mine.LoadUint64(0)
		if uint32(w) != (2*ranks+1)*each || w>>32 != ranks*each {
			return fmt.Errorf("%d and %d", uint32(w), w>>32)
		}
		if w := mine.LoadUint64(8); w != 0 {
			return fmt.Errorf("each bit was changed an even number of times: %x", w)
		}
		return p.Sync(ctx)
	}))
}
