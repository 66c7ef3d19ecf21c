package sdpbench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

func TestMain(m *testing.M) {
	proc.ServeIfWorker()
	goleak.VerifyTestMain(m)
}

// carriers are all, TCP first.
var carriers = append([]Transport{TCP}, FlowControls()...)

// Every carrier moves all that there is to move; the workers check the bytes.
func TestPair(t *testing.T) {
	for _, over := range carriers {
		t.Run(string(over), func(t *testing.T) {
			p, err := Open(t.Context(), Config{Transport: over, Buffers: 8, BufferBytes: 8 << 10, ZeroCopy: -1})
			require.NoError(t, err)
			defer p.Close()
			for _, size := range []int{1, 64, 10000} {
				all := measure.NewLatency()
				us, err := p.PingRounds(size, 30, all)(t.Context())
				require.NoError(t, err)
				require.Positive(t, us)
				require.EqualValues(t, 30, all.Stats().N)
				t.Logf("ping of %d: %.1f us", size, us)
			}
			for _, o := range []StreamOptions{
				{Size: 1}, {Size: 700, Greedy: true}, {Size: 4096}, {Size: 1 << 20}, {Size: 1 << 20, Greedy: true}, {Size: 5 << 20},
			} {
				f, err := p.Stream(t.Context(), o, 3)
				require.NoError(t, err, "%+v", o)
				require.EqualValues(t, 3*o.Size, f.Bytes)
				require.Positive(t, f.MBps())
				t.Logf("%+v: %+v", o, f)
			}
			us, err := p.BurstRounds(Burst{Messages: 20, Size: 4096, Compute: CalibrateWork(50 * time.Microsecond)}, 4, nil)(t.Context())
			require.NoError(t, err)
			require.Greater(t, us, 10.0)
			t.Logf("bursts: %.0f us", us)
		})
	}
}

// Requests are answered over every carrier; the clients look at the responses.
func TestHTTP(t *testing.T) {
	for _, over := range carriers {
		h, err := OpenHTTP(t.Context(), HTTPConfig{Transport: over, Connections: 8, Bytes: 1000})
		require.NoError(t, err)
		defer h.Close()
		for range 2 {
			n, err := h.RequestRate(t.Context(), 10*time.Millisecond)
			require.NoError(t, err)
			require.Positive(t, n)
			t.Logf("%s: %.0f requests a second", over, n)
		}
		h.Close()
	}
	_, err := OpenHTTP(t.Context(), HTTPConfig{Transport: TCP})
	require.ErrorContains(t, err, "0 connections")
}

// With the default buffers, large messages go without a copy.
func TestZeroCopy(t *testing.T) {
	for _, over := range FlowControls() {
		for _, c := range []Config{{Transport: over}, {Transport: over, ZeroCopy: -1}} {
			p, err := Open(t.Context(), c)
			require.NoError(t, err)
			defer p.Close()
			var f Flow
			for tries := 0; tries == 0 || c.ZeroCopy == 0 && f.ZeroCopy == 0; tries++ {
				// A Write that the other end has no time to answer is copied.
				require.Less(t, tries, 100)
				f, err = p.Stream(t.Context(), StreamOptions{Size: 1 << 20}, 20)
				require.NoError(t, err)
			}
			t.Logf("%+v: %.0f MB/s, %.0f %% without a copy, %d messages", c, f.MBps(), f.ZeroCopyPercent(), f.Messages)
			if c.ZeroCopy < 0 {
				require.Zero(t, f.ZeroCopy)
			}
			p.Close()
		}
	}
}

// Looking at the buffers of a stream finds something in them.
func TestUse(t *testing.T) {
	for _, over := range carriers {
		p, err := Open(t.Context(), Config{Transport: over, Buffers: 8, BufferBytes: 8 << 10, ZeroCopy: -1})
		require.NoError(t, err)
		defer p.Close()
		s := p.NewStreamer(StreamOptions{Size: 2048, MeasureUse: true, Compute: CalibrateWork(2 * time.Microsecond)}, 30*time.Millisecond)
		f, err := s.Round(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, f.Elapsed, 10*time.Millisecond)
		require.LessOrEqual(t, f.BufferUse(), 200.0)
		t.Logf("%s: writer %.0f %%, reader %.0f %%, %.0f MB/s", over, 100*f.SendUse, 100*f.ReceiveUse, f.MBps())
	}
}

func TestBadCarrier(t *testing.T) {
	_, err := Open(t.Context(), Config{Transport: "pigeon"})
	require.ErrorContains(t, err, `unknown transport "pigeon"`)
}

func TestNextCount(t *testing.T) {
	const ms = time.Millisecond
	require.Equal(t, 200, nextCount(100, 50*ms, 100*ms))
	require.Equal(t, 1600, nextCount(100, ms, 100*ms))
	require.Equal(t, 1600, nextCount(100, 0, 100*ms))
	require.Equal(t, 10, nextCount(100, time.Second, 100*ms))
	require.Equal(t, 1, nextCount(2, time.Minute, ms))
}

func TestWork(t *testing.T) {
	require.Zero(t, CalibrateWork(0))
	require.Positive(t, CalibrateWork(time.Millisecond))
	before := workResult
	Work(0).Execute()
	require.Equal(t, before|1, workResult)
	Work(1000).Execute()
	require.NotEqual(t, before|1, workResult)
	require.Equal(t, Work(1500), Work(1000).forBytes(1536))
}
