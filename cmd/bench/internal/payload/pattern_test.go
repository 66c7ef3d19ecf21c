package payload

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheck(t *testing.T) {
	p := New(1000)
	require.Equal(t, p[:10], New(10), "a shorter one is its beginning")
	require.NotContains(t, p, byte(0))
	memory := append([]byte(nil), p[:100]...)
	require.NoError(t, p.Check(memory, false))

	memory[17] ^= 1
	require.ErrorContains(t, p.Check(memory, false), "byte 17 of 100")
	require.ErrorContains(t, p.Check(memory, true), "wrong data")
	memory[17] = 0
	require.Error(t, p.Check(memory, false))
	require.NoError(t, p.Check(memory, true), "a hole")

	require.NoError(t, CheckEmpty(make([]byte, 10)))
	require.ErrorContains(t, CheckEmpty([]byte{0, 0, 5}), "byte 2")
}
