package pt2pt

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// TestPayload sends contiguous and strided elements with and without type signatures, and receives
// them in another layout. A probe counts the bytes of the elements.
func TestPayload(t *testing.T) {
	for _, check := range []bool{false, true} {
		for _, from := range []datatype.Buffer{datatype.Of([]int64{1, 2, 3}), datatype.Strided([]int64{1, 0, 2, 0, 3}, 3, 1, 2)} {
			for _, strided := range []bool{false, true} {
				c, got := newSelf(t, check), make([]int64, 5)
				to, want := datatype.Of(got[:3]), []int64{1, 2, 3, 0, 0}
				if strided {
					to, want = datatype.Strided(got, 3, 1, 2), []int64{1, 0, 2, 0, 3}
				}
				s, err := c.Isend(from, 0, 1, Buffered)
				require.NoError(t, err)
				_, found, ok, err := c.Iprobe(match.Any, match.Any, false)
				require.NoError(t, err)
				require.True(t, ok)
				received, err := c.Recv(to, 0, 1)
				require.NoError(t, err)
				require.Equal(t, Status{Tag: 1, Bytes: 24}, received)
				require.Equal(t, received, found)
				require.Equal(t, want, got)
				_, err = s.Wait()
				require.NoError(t, err)
			}
		}
	}
}

// TestUnsignedPayload receives a message without a type signature at a rank that expects one.
func TestUnsignedPayload(t *testing.T) {
	c, got := newSelf(t, true), make([]int64, 1)
	require.ErrorIs(t, c.job.unpackMessage(datatype.Of(got), make([]byte, 8)), deadlock.ErrMismatch)
	require.NoError(t, c.job.unpackMessage(datatype.Of(got), c.job.packMessage(datatype.Of([]int64{5}), false)))
	require.Equal(t, []int64{5}, got)
}

// TestBufferedSends keeps sends of Bsend until their messages are received.
func TestBufferedSends(t *testing.T) {
	c, x, got := newSelf(t, false), make([]int64, longSelf), make([]int64, longSelf)
	for i := range 3 {
		x[0] = int64(i)
		require.NoError(t, c.Bsend(datatype.Of(x), 0, 1))
	}
	require.Len(t, c.job.buffered, 3)
	for i := range 3 {
		_, err := c.Recv(datatype.Of(got), 0, 1)
		require.NoError(t, err)
		require.Equal(t, int64(i), got[0], "the message is a copy")
	}
	require.NoError(t, c.Bsend(datatype.Of(x), 0, 1))
	require.Len(t, c.job.buffered, 1, "those that are done are not kept")
	_, err := c.Recv(datatype.Of(got), 0, 1)
	require.NoError(t, err)
	require.NoError(t, c.job.WaitBuffered())
}
