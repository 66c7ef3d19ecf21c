package rnic

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

func TestQuotas(t *testing.T) {
	q := newQuotas(verbs.DeviceAttr{MaxPD: 1, MaxCQ: 2, MaxQP: 3, MaxSRQ: 4, MaxMR: 5, MaxMW: 6, MaxAH: 7})
	for k, most := range map[kind]int{kindPD: 1, kindCQ: 2, kindQP: 3, kindSRQ: 4, kindMR: 5, kindMW: 6, kindAH: 7} {
		for range most {
			require.NoError(t, q.reserve(k, "make"))
		}
		err := q.reserve(k, "make")
		require.ErrorIs(t, err, verbs.ErrNoMemory)
		require.ErrorContains(t, err, k.String())
		require.Equal(t, most, q.inUse(k))

		q.release(k)
		require.Equal(t, most-1, q.inUse(k))
		require.NoError(t, q.reserve(k, "make"))
	}
}

func TestQuotasHoldWhenTakenAtOnce(t *testing.T) {
	const most, takers = 10, 50
	q := newQuotas(verbs.DeviceAttr{MaxAH: most})
	var got atomic.Int64
	var wg sync.WaitGroup
	for range takers {
		wg.Go(func() {
			if q.reserve(kindAH, "make") == nil {
				got.Add(1)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, most, got.Load())
	require.Equal(t, most, q.inUse(kindAH))
}
