package verbsbench

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/payload"
	"github.com/softrnic/softrnic/verbs"
)

// What a stream's memory must look like when so many messages have come.
func TestVerify(t *testing.T) {
	p := &streamPlan{StreamOptions: StreamOptions{Size: 10}, slots: 4}
	want := payload.New(40)
	memory := make([]byte, 40)
	copy(memory, want[:20])
	require.NoError(t, p.verifyMemory(memory, want, 2, false))
	require.Error(t, p.verifyMemory(memory, want, 1, false), "one too many")
	require.Error(t, p.verifyMemory(memory, want, 3, false), "one too few")
	require.NoError(t, p.verifyMemory(memory, want, 3, true))
	copy(memory, want)
	require.NoError(t, p.verifyMemory(memory, want, 4000, false))
}

// Units follow one another through memory, in messages and in pieces.
func TestPlanPlaces(t *testing.T) {
	whole := &streamPlan{StreamOptions: StreamOptions{Size: 100}, fragments: 1, unitSize: 100, slots: 3}
	cut := &streamPlan{StreamOptions: StreamOptions{Size: 100}, fragments: 3, unitSize: 40, slots: 2}
	for unit, at := range [][2]int{{0, 100}, {100, 100}, {200, 100}, {0, 100}} {
		off, n := whole.unitRange(uint64(unit))
		require.Equal(t, at, [2]int{off, n})
	}
	for unit, at := range [][2]int{{0, 40}, {40, 40}, {80, 20}, {100, 40}, {140, 40}, {180, 20}, {0, 40}} {
		off, n := cut.unitRange(uint64(unit))
		require.Equal(t, at, [2]int{off, n})
	}
}

func TestBadOptions(t *testing.T) {
	e := &side{path: verbs.MTU1024}
	for _, o := range []PingOptions{
		{Op: "rc-hope", Size: 8}, {Op: RCWrite}, {Op: RCAtomic, Size: 16}, {Op: RCSend, Size: 8, QPs: 2},
		{Op: RCWrite, Size: 8, QPs: 2, Event: true}, {Op: RCWrite, Size: 500, QPs: 2}, {Op: UDSend, Size: 1 << 20},
	} {
		_, err := newPing(e, o)
		require.ErrorContains(t, err, "verbsbench", "%+v", o)
	}
	for _, o := range []StreamOptions{
		{Op: "rc-hope", Size: 8}, {Op: RCWrite}, {Op: RCAtomic, Size: 8}, {Op: RCWrite, Size: 8, List: 32, Depth: 16},
	} {
		_, err := newPlan(e, o)
		require.ErrorContains(t, err, "verbsbench", "%+v", o)
	}
}
