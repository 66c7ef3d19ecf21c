package rnic

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A peer that waits for acknowledgements gets them after half of what it sends at a time; one
// that keeps coming has few; one that has sent a few packets, or wants none, changes nothing.
func TestLearnSpacing(t *testing.T) {
	s := &shard{ackMost: ackPackets, ackEvery: ackPackets}
	runs := func(n, packets int) {
		for range n {
			s.run = packets
			s.learnSpacing()
			require.Zero(t, s.run)
		}
	}
	runs(20, 40)
	require.Equal(t, ackPackets, s.ackEvery, "nobody wants any")
	s.owed.Store(1)
	runs(20, streamPackets-1)
	require.Equal(t, ackPackets, s.ackEvery, "this is no stream")
	runs(1, 40)
	require.Equal(t, (ackPackets+20)/2, s.ackEvery, "once is not always")
	runs(20, 40)
	require.InDelta(t, 20, s.ackEvery, 1)
	runs(20, streamPackets)
	require.InDelta(t, streamPackets, s.ackEvery, 1)
	runs(20, 10_000)
	require.Equal(t, ackPackets, s.ackEvery)

	s.ackMost, s.ackEvery = 2, 2 // with a small receive buffer
	runs(20, 40)
	require.Equal(t, 2, s.ackEvery)
}

// Amid a message acknowledgements come as seldom as ever, unless another peer wants one, or
// the one that is owed is another's.
func TestSpacingAmidMessage(t *testing.T) {
	a, b := &QP{}, &QP{}
	s := &shard{ackMost: ackPackets, ackEvery: 9}
	require.Equal(t, 9, s.spacing(), "nothing is owed")
	s.owing = []*QP{a}
	require.Equal(t, 9, s.spacing(), "its message is over")
	s.amid = a
	require.Equal(t, ackPackets, s.spacing())
	s.owing = []*QP{b}
	require.Equal(t, 9, s.spacing())
	s.owing = []*QP{a, b}
	require.Equal(t, 9, s.spacing())
}
