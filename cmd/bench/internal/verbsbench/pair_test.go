package verbsbench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
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
