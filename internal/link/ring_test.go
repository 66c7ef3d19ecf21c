package link

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRing(t *testing.T) {
	var r ring
	d := NewDatagrams(3)
	next := byte(0) // expected content
	pop := func(want int) {
		d.Reset()
		r.pop(d)
		require.Len(t, d.Msgs(), want)
		for _, m := range d.Msgs() {
			require.Equal(t, []byte{next, 1}, m.Buf)
			require.Equal(t, next, m.TOS)
			require.Equal(t, here, m.Src)
			require.Equal(t, 1, m.Count())
			next++
		}
	}
	in := byte(0)
	push := func() bool {
		ok := r.push(here, in, []byte{in, 1})
		if ok {
			in++
		}
		return ok
	}
	pop(0)
	for range 5 {
		require.True(t, push())
	}
	pop(3)
	require.False(t, r.isEmpty())
	pop(2)
	require.True(t, r.isEmpty())

	for range ringSlots {
		require.True(t, push())
	}
	require.False(t, push(), "full")
	pop(3)
	for range 3 {
		require.True(t, push(), "around the end")
	}
	require.False(t, push())
	for range ringSlots / 3 {
		pop(3)
	}
	pop(ringSlots % 3)
	pop(0)
}
