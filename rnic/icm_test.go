package rnic

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/rnichook"
	"github.com/softrnic/softrnic/verbs"
)

func TestICMEvictsLeastRecentlyUsed(t *testing.T) {
	c := newICMCache(ICM{Entries: 3, MissPenalty: 1}, nil)
	for i, step := range []struct {
		qpn  uint32
		miss bool
	}{
		{1, true}, {2, true}, {1, false}, {3, true}, {3, false}, // 3 1 2
		{4, true}, {2, true}, {3, false}, {1, true}, {4, true}, // 2, 1, 4 and 2 were evicted
	} {
		require.Equal(t, step.miss, c.markUsed(step.qpn), "step %d", i)
	}
}

// TestICMModel compares the cache with a slow model: a map of the times of last use.
func TestICMModel(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		entries := 1 + rng.IntN(40)
		c := newICMCache(ICM{Entries: entries, MissPenalty: 1}, nil)
		used := map[uint32]int{}
		for now := range 500 {
			qpn := rng.Uint32N(60)
			_, hit := used[qpn]
			require.Equal(t, !hit, c.markUsed(qpn), "seed %d", seed)
			used[qpn] = now
			if len(used) > entries {
				oldest := qpn
				for q, at := range used {
					if at < used[oldest] {
						oldest = q
					}
				}
				delete(used, oldest)
			}
		}
	}
}

// TestICMCharges checks that with a cache of one context, alternating queue pairs miss at both
// ends, and a single one does not.
func TestICMCharges(t *testing.T) {
	const penalty = time.Millisecond
	var now int64
	c := newICMCache(ICM{Entries: 1, MissPenalty: penalty}, func() int64 { now += 1000; return now })
	c.loadContext(7)
	require.GreaterOrEqual(t, now, int64(penalty))
	before := now
	c.loadContext(7)
	require.Equal(t, before, now, "a hit does not look at the clock")
	c.loadContext(8)
	require.GreaterOrEqual(t, now-before, int64(penalty))
}

// TestICMInDevice checks that a device with the model uses the cache for every send and packet.
func TestICMInDevice(t *testing.T) {
	x, y := pair(t, Options{ICM: ICM{Entries: 2, MissPenalty: time.Nanosecond}})
	cached := func(e *end) []uint32 {
		s := e.qp.(*queuePair).shard
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.Clone(s.icm.recent)
	}
	require.Empty(t, cached(x))
	require.Empty(t, cached(y))
	wrs := []verbs.SendWR{{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled,
		SGList: []verbs.SGE{x.mr.SGE(0, 8)}, RemoteAddr: y.mr.Addr(), RKey: y.mr.RKey()}}
	_, err := x.qp.PostSend(wrs)
	require.NoError(t, err)
	var wc [1]verbs.WC
	_, err = x.cq.PollWait(context.Background(), wc[:])
	require.NoError(t, err)
	require.NoError(t, wc[0].Err())
	require.Equal(t, []uint32{x.qp.Num()}, cached(x))
	require.Equal(t, []uint32{y.qp.Num()}, cached(y))
}

func TestICMOptions(t *testing.T) {
	require.Nil(t, newICMCache(ICM{Entries: 8}, nil), "without a penalty there is no cache")
	require.Equal(t, icmEntries, cap(newICMCache(ICM{MissPenalty: 1}, nil).recent))
	for _, m := range []ICM{{Entries: -1}, {Entries: maxICMEntries + 1}, {MissPenalty: -1}} {
		_, err := Open(Options{ICM: m})
		require.ErrorIs(t, err, verbs.ErrInvalid)
	}
	_, err := Open(Options{ICM: ICM{MissPenalty: 1}, hooks: rnichook.Hooks{Clock: func() int64 { return 1 }}})
	require.ErrorContains(t, err, "clock")
}

// TestICMVariable checks that the environment sets the model of a device without Options.ICM.
func TestICMVariable(t *testing.T) {
	for text, want := range map[string]ICM{"": {}, "off": {}, "4,5us": {4, 5 * time.Microsecond}} {
		t.Setenv(envICM, text)
		var o Options
		require.NoError(t, o.applyEnvironment())
		require.Equal(t, want, o.ICM)
		o.ICM = ICM{Entries: 7, MissPenalty: time.Nanosecond}
		require.NoError(t, o.applyEnvironment())
		require.Equal(t, 7, o.ICM.Entries)
	}
	for _, text := range []string{"4", "4,", ",5us", "0,5us", "-1,5us", "4,0s", "4,5", "5us,4", "5000,1us"} {
		t.Setenv(envICM, text)
		_, err := Open(Options{})
		require.ErrorIs(t, err, verbs.ErrInvalid, text)
	}
}
