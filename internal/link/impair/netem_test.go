package impair

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/wire"
	"github.com/stretchr/testify/require"
)

// TestLoss counts the packets that arrive, and checks that they are intact.
func TestLoss(t *testing.T) {
	r := newRig(t, "loss 10% seed 1")
	r.send(train(wire.RCSendMiddle, 1000)...)
	got := r.runPeer()
	require.Equal(t, 894, len(got))
	for _, s := range got {
		require.Equal(t, wire.ICRCExact, s.icrc, "sealed for its place among those that are left")
	}
	require.Equal(t, Counts{Lost: 106}, r.conn.Counts())
}

func TestECN(t *testing.T) {
	r := newRig(t, "loss 10% ecn seed 1")
	all := train(wire.RCSendMiddle, 1000)
	for i := range all[:500] {
		all[i].to = wayECT
	}
	r.send(all...)
	marked := 0
	for _, s := range r.runPeer() {
		if s.tos&3 == 3 {
			marked++
			require.Less(t, s.psn, wire.PSN(500))
		}
	}
	counts := r.conn.Counts()
	require.Equal(t, 106, marked+int(counts.Lost), "as many as are lost without ecn")
	require.Equal(t, Counts{Lost: 45, Marked: 61}, counts)
}

func TestDuplicate(t *testing.T) {
	r := newRig(t, "duplicate 10% seed 1")
	r.send(train(wire.RCSendMiddle, 1000)...)
	times := make([]int, 1000)
	for _, s := range r.runPeer() {
		require.Equal(t, wire.ICRCExact, s.icrc)
		times[s.psn]++
	}
	require.Equal(t, 1, slices.Min(times))
	require.Equal(t, 2, slices.Max(times), "a duplicate is not duplicated again")
	require.Equal(t, Counts{Duplicated: 106}, r.conn.Counts())

	r = newRig(t, "duplicate 100% loss 100%")
	r.send(train(wire.RCSendMiddle, 10)...)
	require.Equal(t, 10, len(r.runPeer()), "as in netem, a loss takes one of the two")
}

func TestCorrupt(t *testing.T) {
	r := newRig(t, "corrupt 10% seed 1")
	r.send(train(wire.RCSendMiddle, 1000)...)
	bad := 0
	for _, s := range r.runPeer() {
		if s.icrc == wire.ICRCBad {
			bad++
		}
	}
	require.Equal(t, 102, bad)
	require.Equal(t, Counts{Corrupted: 103}, r.conn.Counts())
}

func TestDelay(t *testing.T) {
	r := newRig(t, "delay 2ms")
	r.send(train(wire.RCSendMiddle, 3)...)
	require.EqualValues(t, 2*time.Millisecond, r.conn.NextDue())
	require.Equal(t, 3, r.conn.Counts().Held)
	got := r.runPeer()
	require.Equal(t, []time.Duration{2 * time.Millisecond, 2 * time.Millisecond, 2 * time.Millisecond}, arrivalTimes(got))
	require.Equal(t, []int{3}, groups(got), "together still")
	require.Zero(t, r.conn.NextDue())
	require.Equal(t, Counts{Delayed: 3}, r.conn.Counts())
}

func TestJitter(t *testing.T) {
	for _, d := range []string{"uniform", "normal", "pareto", "paretonormal"} {
		r := newRig(t, "delay 2ms 0.5ms distribution "+d)
		r.send(train(wire.RCSendMiddle, 500)...)
		got := r.runPeer()
		require.Equal(t, 500, len(got))
		at := arrivalTimes(got)
		require.True(t, slices.IsSorted(at))
		require.False(t, slices.IsSortedFunc(got, func(a, b seen) int { return int(a.psn) - int(b.psn) }), "they overtake")
		least, most := 0*time.Millisecond, 4*time.Millisecond
		switch d {
		case "uniform":
			least, most = 1500*time.Microsecond, 2500*time.Microsecond
		case "pareto":
			least = 1666 * time.Microsecond
		}
		require.GreaterOrEqual(t, at[0], least)
		require.LessOrEqual(t, at[499], most)
		require.Greater(t, at[499]-at[0], 500*time.Microsecond)
	}
}

// TestJitterBelowZero checks that a packet leaves at once if the distribution gives a negative
// delay.
func TestJitterBelowZero(t *testing.T) {
	r := newRig(t, "delay 0ms 1ms")
	r.send(train(wire.RCSendMiddle, 100)...)
	at := arrivalTimes(r.runPeer())
	require.Zero(t, at[0])
	require.EqualValues(t, 46, r.conn.Counts().Delayed)
}

func TestReorder(t *testing.T) {
	r := newRig(t, "delay 10us reorder 100% gap 5")
	r.send(train(wire.RCSendMiddle, 12)...)
	require.Equal(t, "4 9 0 1 2 3 5 6 7 8 10 11", psns(r.runPeer()), "every fifth overtakes those before")
	require.Equal(t, Counts{Delayed: 10, Reordered: 2}, r.conn.Counts())

	r = newRig(t, "delay 10us reorder 25% seed 1")
	r.send(train(wire.RCSendMiddle, 1000)...)
	require.Equal(t, 1000, len(r.runPeer()))
	require.Equal(t, Counts{Delayed: 760, Reordered: 240}, r.conn.Counts())
}

func TestRate(t *testing.T) {
	// 12 + 956 + 4 bytes and 28 of headers take 8 us at 1 Gbit/s.
	r := newRig(t, "rate 1gbit")
	all := train(wire.RCSendMiddle, 3)
	for i := range all {
		all[i].payload = 956
	}
	r.send(all...)
	us := time.Microsecond
	require.Equal(t, []time.Duration{8 * us, 16 * us, 24 * us}, arrivalTimes(r.runPeer()))

	r = newRig(t, "rate 1gbit delay 10us")
	r.send(all...)
	require.Equal(t, []time.Duration{18 * us, 26 * us, 34 * us}, arrivalTimes(r.runPeer()), "waiting counts for the delay")
	r.network.AdvanceTo(100_000)
	r.send(all[0])
	require.Equal(t, []time.Duration{118 * us}, arrivalTimes(r.runPeer()), "nothing in front of it any more")
}

func TestLimit(t *testing.T) {
	r := newRig(t, "delay 1ms limit 5")
	r.send(train(wire.RCSendMiddle, 8)...)
	require.Equal(t, "0 1 2 3 4", psns(r.runPeer()))
	require.Equal(t, Counts{Overflow: 3, Delayed: 5}, r.conn.Counts())
	r.send(train(wire.RCSendMiddle, 5)...)
	require.Equal(t, 5, len(r.runPeer()), "there is room again")

	r = newRig(t, "delay 1ms")
	r.send(train(wire.RCSendMiddle, DefaultLimit+1)...)
	require.Equal(t, DefaultLimit, len(r.runPeer()))
}

// TestRateModel compares departures with a queue that is computed packet by packet.
func TestRateModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	r := newRig(t, "rate 10mbit")
	var want []time.Duration
	now, free := time.Duration(0), time.Duration(0)
	for i := range 200 {
		p := packet{op: wire.RCSendMiddle, qpn: 7, psn: wire.PSN(i), payload: 4 * rng.IntN(100)}
		now += time.Duration(rng.IntN(400)) * time.Microsecond
		free = max(free, now) + time.Duration(28+12+p.payload+4)*800
		want = append(want, free)
		r.network.ScheduleAt(int64(now), func() { r.send(p) })
	}
	require.Equal(t, want, arrivalTimes(r.runPeer()))
}

func TestOneSeedIsOneRun(t *testing.T) {
	const everything = "loss gemodel 2% 20% delay 20us 10us 20% distribution normal reorder 5% duplicate 3% corrupt 3% rate 1gbit limit 40; " +
		"drop 5% WRITE; duplicate every 7th SEND; delay 30us 10% WRITE; mark ecn 10% SEND; corrupt 5% SEND; "
	trace := func(seed string) ([]seen, Counts) {
		r := newRig(t, everything+"seed "+seed)
		for i := range 50 {
			op := []wire.Opcode{wire.RCSendMiddle, wire.RCWriteMiddle}[i%2]
			r.network.ScheduleAt(int64(i)*5000, func() { r.send(train(op, 3)...) })
		}
		return r.runPeer(), r.conn.Counts()
	}
	first, counts := trace("1")
	again, countsAgain := trace("1")
	require.Equal(t, first, again)
	require.Equal(t, counts, countsAgain)
	for i, n := range []uint64{counts.Lost, counts.Dropped, counts.Duplicated, counts.Corrupted, counts.Delayed, counts.Reordered, counts.Marked} {
		require.NotZero(t, n, "count %d of %+v", i, counts)
	}
	other, _ := trace("2")
	require.NotEqual(t, first, other)
	require.Greater(t, first[len(first)-1].at, int64(memory.DefaultDelay))
}
