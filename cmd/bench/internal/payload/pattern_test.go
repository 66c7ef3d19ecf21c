package payload_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/payload"
)

func TestCheck(t *testing.T) {
	p := payload.New(1000)
	require.Equal(t, p[:10], payload.New(10), "a shorter one is its beginning")
	require.NotContains(t, p, byte(0))
	memory := append([]byte(nil), p[:100]...)
	require.NoError(t, p.Check(memory, false))

	memory[17] ^= 1
	require.ErrorContains(t, p.Check(memory, false), "byte 17 of 100")
	require.ErrorContains(t, p.Check(memory, true), "wrong data")
	memory[17] = 0
	require.Error(t, p.Check(memory, false))
	require.NoError(t, p.Check(memory, true), "a hole")

	require.NoError(t, payload.CheckEmpty(make([]byte, 10)))
	require.ErrorContains(t, payload.CheckEmpty([]byte{0, 0, 5}), "byte 2")
}
