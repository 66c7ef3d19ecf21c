package mpi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// TestWinManyMessages starts more Puts by message than may be in progress: the others use
// packets, and all complete.
func TestWinManyMessages(t *testing.T) {
	const many, each = 6000, 200
	o := mpi.Options{OneSided: mpi.Messages, RDMA: mpi.RDMAOptions{Eager: 100}}
	job(t, 2, o, func(w mpi.World) error {
		win, mine, err := mpi.WinAllocate[byte](w.Comm, many*each)
		require.NoError(t, err)
		require.NoError(t, win.Fence())
		if w.Rank() == 0 {
			b := make([]byte, each)
			for i := range b {
				b[i] = byte(i + 1)
			}
			for i := range many {
				require.NoError(t, win.Put(mpi.Of(b), 1, mpi.At(i*each)))
			}
		}
		require.NoError(t, win.Fence())
		if w.Rank() == 1 {
			for i, v := range mine {
				if v != byte(i%each+1) {
					t.Errorf("byte %d is %d", i, v)
					break
				}
			}
		}
		return win.Free()
	})
}

// TestWinTooManyMessages checks that a rank that announces messages without end is disconnected
// before it uses up the memory.
func TestWinTooManyMessages(t *testing.T) {
	w, err := mpi.Init(open, mpi.Options{})
	require.NoError(t, err)
	win, _, err := mpi.WinAllocate[byte](w.Comm, 64)
	require.NoError(t, err)
	target := (&rma.Target{Element: rma.DenseElement(1), Vectors: []rma.Vector{{Off: 8, N: 16, Count: 1}}}).Append(nil)
	told := 0
	for ; err == nil && told <= mpi.MaxReplies; told++ {
		err = win.WinPacket(0, envelope.Header{Tag: mpi.PacketSend, ID: uint64(told), Length: 16}, target)
	}
	require.ErrorIs(t, err, protocol.ErrProtocol)
	require.ErrorContains(t, err, "messages at a time")
	require.Equal(t, mpi.MaxReplies+1, told)
	w.Vanish()
}
