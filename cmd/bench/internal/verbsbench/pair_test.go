package verbsbench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/payload"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/rdm"
	"github.com/softrnic/softrnic/verbs"
)

func TestMain(m *testing.M) {
	proc.ServeIfWorker()
	goleak.VerifyTestMain(m)
}

func openTestPair(t *testing.T, c Config) *Pair {
	p, err := OpenPair(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

// Every operation goes to and fro, polled and blocked, and its payload is
// checked by the workers.
func TestPingPong(t *testing.T) {
	p := openTestPair(t, Config{})
	for _, o := range []PingOptions{
		{Op: RCWrite, Size: 8}, {Op: RCWrite, Size: 3}, {Op: RCWrite, Size: 8, QPs: 5}, {Op: RCWrite, Size: 10000},
		{Op: RCWrite, Size: 8, Event: true},
		{Op: RCSend, Size: 8}, {Op: RCSend, Size: 9001}, {Op: RCSend, Size: 8, Event: true},
		{Op: RCRead, Size: 1}, {Op: RCRead, Size: 65536}, {Op: RCAtomic, Size: 8}, {Op: RCAtomic, Size: 8, Event: true},
		{Op: UCWrite, Size: 8}, {Op: UCWrite, Size: 5000, Event: true},
		{Op: UDSend, Size: 8}, {Op: UDSend, Size: 4096}, {Op: UDSend, Size: 10001, Event: true},
	} {
		s, err := p.OpenPingPong(t.Context(), o)
		require.NoError(t, err, "%+v", o)
		all := measure.NewLatency()
		v, err := measure.Alternate(t.Context(), 2, s.LatencyRounds(40, all))
		require.NoError(t, err, "%+v", o)
		require.Positive(t, v[0][1], "%+v", o)
		require.EqualValues(t, 80, all.Stats().N)
		t.Logf("%+v: %.2f us", o, v[0][1])
		require.NoError(t, s.Close(t.Context()))
	}
}

func TestStream(t *testing.T) {
	for _, c := range []Config{{}, {MTU: 1024, RecvBuffer: -1}} {
		p := openTestPair(t, c)
		for _, o := range []StreamOptions{
			{Op: RCWrite, Size: 8}, {Op: RCWrite, Size: 8, List: 32}, {Op: RCWrite, Size: 65536}, {Op: RCWrite, Size: 3 << 20},
			{Op: RCSend, Size: 1}, {Op: RCSend, Size: 1 << 20}, {Op: RCRead, Size: 65536}, {Op: RCRead, Size: 1},
			{Op: UCWrite, Size: 65536}, {Op: UCWrite, Size: 8},
			{Op: UDSend, Size: 8}, {Op: UDSend, Size: 1024}, {Op: UDSend, Size: 100001},
		} {
			s, err := p.OpenStream(t.Context(), o)
			require.NoError(t, err, "%+v", o)
			for range 2 {
				f, err := s.Round(t.Context(), 5*time.Millisecond)
				require.NoError(t, err, "%+v", o)
				require.Empty(t, f.Failure)
				require.Positive(t, f.Messages, "%+v", o)
				require.Equal(t, f.Messages*int64(o.Size), f.Bytes)
				t.Logf("%+v: %.0f MB/s, %.0f/s, lost %d, %v", o, f.MBps(), f.MessagesPerSecond(), f.Lost, f.Elapsed)
			}
			require.NoError(t, s.Close(t.Context()))
		}
	}
}

func TestCrowd(t *testing.T) {
	p := openTestPair(t, Config{ICMEntries: 2, ICMMissPenalty: time.Microsecond})
	rc, err := p.OpenIdleConns(t.Context(), IdleConnsOptions{Transport: verbs.RC, Peers: 300})
	require.NoError(t, err)
	ud, err := p.OpenIdleConns(t.Context(), IdleConnsOptions{Transport: verbs.UD, Peers: 300})
	require.NoError(t, err)
	for i := range 2 {
		t.Logf("rc %d, ud %d bytes a peer", rc.HeapBytes[i]/300, ud.HeapBytes[i]/300)
		require.Greater(t, rc.HeapBytes[i], ud.HeapBytes[i])
		require.Positive(t, ud.HeapBytes[i])
	}
	require.NoError(t, rc.Close(t.Context()))
	require.NoError(t, ud.Close(t.Context()))
}

// On lossy links all that RC carries arrives, and what arrives of UC and UD is
// whole: the sink checks.
func TestStreamWithLoss(t *testing.T) {
	p := openTestPair(t, Config{Impair: "loss 5% seed 1"})
	for _, op := range []Op{RCWrite, RCSend, RCRead, UCWrite, UDSend} {
		s, err := p.OpenStream(t.Context(), StreamOptions{Op: op, Size: 9000, Depth: 16})
		require.NoError(t, err)
		f, err := s.Round(t.Context(), 5*time.Millisecond)
		require.NoError(t, err, op)
		require.Empty(t, f.Failure, op)
		if op != UCWrite && op != UDSend {
			require.Positive(t, f.Messages, op)
			require.Zero(t, s.LostPercent(), op)
			require.Zero(t, f.Lost, op)
		}
		require.NoError(t, s.Close(t.Context()))
	}
}

// A queue pair that gives up ends the stream, but neither process.
func TestStreamFails(t *testing.T) {
	p := openTestPair(t, Config{Impair: "drop every 1st SEND"})
	s, err := p.OpenStream(t.Context(), StreamOptions{Op: RCSend, Size: 100})
	require.NoError(t, err)
	_, err = s.Rounds(time.Millisecond, Flow.MBps)(t.Context())
	require.ErrorIs(t, err, ErrQPFailed)
	require.ErrorContains(t, err, "RETRY_EXC")
	require.NoError(t, s.Close(t.Context()))
}

// Both schemes bring every message to its place; the root checks all bytes.
func TestGather(t *testing.T) {
	for _, s := range []Scheme{Copy, ZeroCopy} {
		g, err := OpenGather(t.Context(), GatherOptions{Scheme: s, Senders: 3, Size: 5000})
		require.NoError(t, err)
		defer g.Close()
		all := measure.NewLatency()
		v, err := measure.Alternate(t.Context(), 2, g.LatencyRounds(30, all))
		require.NoError(t, err, s)
		require.Positive(t, v[0][1])
		require.EqualValues(t, 60, all.Stats().N)
		t.Logf("%s: %.1f us", s, v[0][1])
	}
}

func TestGatherOptions(t *testing.T) {
	for _, o := range []GatherOptions{{}, {Scheme: "hope", Senders: 1, Size: 8}, {Scheme: Copy, Size: 8}, {Scheme: Copy, Senders: 1, Size: 7}} {
		_, err := OpenGather(t.Context(), o)
		require.ErrorContains(t, err, "invalid gather options")
	}
}

// Every way of reliable datagrams goes to and fro, and flows; the workers check what
// they read.
func TestRDM(t *testing.T) {
	p := openTestPair(t, Config{})
	for _, o := range []RDMOptions{
		{Op: RDMRead, Size: 64}, {Op: RDMRead, Size: 8000, Poll: true}, {Op: RDMRead, Size: 4000, Native: true},
		{Op: RDMWrite, Size: 64, Poll: true}, {Op: RDMWrite, Size: 8000, Native: true},
		{Op: RDMSend, Size: 10_000},
	} {
		s, err := p.OpenRDM(t.Context(), o)
		require.NoError(t, err, "%+v", o)
		all := measure.NewLatency()
		v, err := measure.Alternate(t.Context(), 2, s.LatencyRounds(20, all), s.BandwidthRounds(5*time.Millisecond))
		require.NoError(t, err, "%+v", o)
		require.Positive(t, v[0][1], "%+v", o)
		require.Positive(t, v[1][1], "%+v", o)
		require.EqualValues(t, 40, all.Stats().N)
		require.NoError(t, s.Close(t.Context()))
	}
	_, err := p.OpenRDM(t.Context(), RDMOptions{Op: RDMWrite, Size: 12, Service: rdm.ServeCalls})
	require.Error(t, err)
}

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
