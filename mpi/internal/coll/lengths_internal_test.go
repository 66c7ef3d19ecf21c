package coll

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLengths checks that lengths that a peer announces are limited to possible ones.
func TestLengths(t *testing.T) {
	l := make(blockLengths, 3*lengthSize)
	l.set(0, 1)
	l.set(1, math.MaxInt-3)
	l.set(2, 2)
	require.NoError(t, l.validate())
	require.Equal(t, math.MaxInt, l.sum(0, 3))
	require.Equal(t, 2, l.sum(2, 1))
	require.Equal(t, []byte(l[8:16]), l.sub(1, 1))
	l.set(2, 3)
	require.ErrorIs(t, l.validate(), ErrArgument)
	l.set(1, 0)
	l.set(2, -1)
	require.ErrorContains(t, l.validate(), "block of 18446744073709551615 bytes after 1 bytes overflows int")
}
