package rdm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdm"
)

// TestNativeNegotiation checks that two capable endpoints use native operations, whichever requests it
// first, or both at once; with one that is not, operations are emulated and no native ones are sent
// to it.
func TestNativeNegotiation(t *testing.T) {
	for _, c := range []struct {
		a, b   rdm.Options
		native bool
	}{
		{rdm.Options{}, rdm.Options{}, true},
		{rdm.Options{Emulate: true}, rdm.Options{}, false},
		{rdm.Options{}, rdm.Options{Emulate: true}, false},
		{rdm.Options{Emulate: true}, rdm.Options{Emulate: true}, false},
	} {
		a, b := endpoint(t, "", c.a), endpoint(t, "", c.b)
		ra, rb := region(t, a, 64, everything), region(t, b, 64, everything)
		ctx := guarded(t)
		p, q := dial(t, a, b), dial(t, b, a)
		var ops [2]rdm.Op
		require.NoError(t, p.FetchAdd(&ops[0], rb.Remote(0), 1))
		require.NoError(t, q.FetchAdd(&ops[1], ra.Remote(0), 2))
		require.NoError(t, ops[0].Wait(ctx))
		require.NoError(t, ops[1].Wait(ctx))
		require.Equal(t, []uint64{1, 2}, []uint64{rb.LoadUint64(0), ra.LoadUint64(0)})
		require.Equal(t, []bool{c.native, c.native}, []bool{p.Native(), q.Native()})
		if c.native {
			require.Zero(t, a.Stats().Served+b.Stats().Served)
		} else {
			require.EqualValues(t, 1, a.Stats().Served)
		}
	}
}
