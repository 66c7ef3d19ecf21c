package acpbench_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cmd/bench/internal/acpbench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

func TestMain(m *testing.M) {
	proc.ServeIfWorker()
	goleak.VerifyTestMain(m)
}

// TestRounds runs rounds of all kinds repeatedly on three ranks.
func TestRounds(t *testing.T) {
	job, err := acpbench.Open(t.Context(), acpbench.Config{Ranks: 3})
	require.NoError(t, err)
	defer job.Close()
	events := measure.NewLatency()
	c := acpbench.Channel{SlotSize: 4096}
	for range 2 {
		for _, round := range []measure.Round{
			job.PingPong(c, 10000, 5, events), job.Stream(c, 50000, 9), job.Copies(acpbench.RemoteToLocal, 100, 5),
			job.Copies(acpbench.LocalToRemote, 300000, 5), job.Copies(acpbench.RemoteToRemote, 300000, 5),
		} {
			v, err := round(t.Context())
			require.NoError(t, err)
			require.Positive(t, v)
		}
		times, err := job.Connect(t.Context(), acpbench.Channel{SlotSize: 64, SendSlots: 1, RecvSlots: 1, Imm: true}, 3)
		require.NoError(t, err)
		for i := range 2 {
			require.Positive(t, times.Connect[i])
			require.Positive(t, times.Free[i])
		}
	}
	require.EqualValues(t, 10, events.Stats().N)
}

// TestFailure checks that a failure ends the job with its cause.
func TestFailure(t *testing.T) {
	job, err := acpbench.Open(t.Context(), acpbench.Config{Ranks: 2})
	require.NoError(t, err)
	defer job.Close()
	_, err = job.Copies(acpbench.RemoteToRemote, 8, 1)(t.Context())
	require.ErrorContains(t, err, "want 3 ranks")
}

// TestMemory: the growth of the process by a channel is at least the account of it, and a connected
// rank takes more than an idle one. Memory is measured in fresh jobs.
func TestMemory(t *testing.T) {
	job, err := acpbench.Open(t.Context(), acpbench.Config{Ranks: 3})
	require.NoError(t, err)
	defer job.Close()
	rank, err := job.RankMemory(t.Context())
	require.NoError(t, err)
	require.Positive(t, rank.Idle)
	require.Greater(t, rank.Connected, rank.Idle)
	_, err = job.RankMemory(t.Context())
	require.ErrorContains(t, err, "want a fresh job")

	pair, err := acpbench.Open(t.Context(), acpbench.Config{Ranks: 2})
	require.NoError(t, err)
	defer pair.Close()
	ends, err := pair.ChannelMemory(t.Context(), acpbench.Channel{SlotSize: 64 << 10, SendSlots: 2, RecvSlots: 4}, 4)
	require.NoError(t, err)
	for i, slots := range []float64{2, 4} {
		require.Greater(t, ends[i].Account, slots*(64<<10))
		require.GreaterOrEqual(t, ends[i].Each, ends[i].Account)
		require.Greater(t, ends[i].First, ends[i].Each)
	}

	many, err := acpbench.Open(t.Context(), acpbench.Config{Ranks: 3})
	require.NoError(t, err)
	defer many.Close()
	_, err = many.ChannelMemory(t.Context(), acpbench.Channel{SlotSize: 64, SendSlots: 1, RecvSlots: 1}, 1)
	require.ErrorContains(t, err, "want 2 ranks, not 3")
}
