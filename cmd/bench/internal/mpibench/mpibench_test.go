package mpibench_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
	"github.com/softrnic/softrnic/cmd/bench/internal/osu"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

func TestMain(m *testing.M) {
	proc.ServeIfWorker()
	goleak.VerifyTestMain(m)
}

// TestRounds runs rounds of all kinds repeatedly on four ranks.
func TestRounds(t *testing.T) {
	job, err := mpibench.Open(t.Context(), mpibench.Config{Transport: mpibench.RDMA, Ranks: 4})
	require.NoError(t, err)
	defer job.Close()
	for range 2 {
		us, err := job.Collective("Allgather", 100, 3)(t.Context())
		require.NoError(t, err)
		require.Positive(t, us)
		row, err := job.IMB(t.Context(), "Barrier", 0, 3)
		require.NoError(t, err)
		require.Equal(t, 4, row.Ranks)
		mops, err := job.Kernel("ep", 'S')(t.Context())
		require.NoError(t, err)
		require.Positive(t, mops)
	}
}

// TestFailures checks that failures end the job with their cause.
func TestFailures(t *testing.T) {
	_, err := mpibench.Open(t.Context(), mpibench.Config{Transport: "pigeon", Ranks: 2})
	require.ErrorContains(t, err, `unknown transport "pigeon"; known transports: [mpi-fast mpi-fast-messages mpi-hybrid mpi-rdma mpi-rdma-messages mpi-shared mpi-tcp mpi-ud]`)
	for want, run := range map[string]func(*mpibench.Job) error{
		"osu_latency: 3 ranks, want 2": func(j *mpibench.Job) error {
			_, err := j.Latency(8, 10)(t.Context())
			return err
		},
		"unknown test": func(j *mpibench.Job) error {
			_, err := j.OSU(t.Context(), "nothing", 8, osu.Options{})
			return err
		},
		"unknown benchmark": func(j *mpibench.Job) error {
			_, err := j.IMB(t.Context(), "nothing", 8, 1)
			return err
		},
		`unknown kernel "mg"`: func(j *mpibench.Job) error {
			_, err := j.NAS(t.Context(), "mg", 'S')
			return err
		},
		"want S, W, A, B or C": func(j *mpibench.Job) error {
			_, err := j.NAS(t.Context(), "ep", 'D')
			return err
		},
	} {
		job, err := mpibench.Open(t.Context(), mpibench.Config{Transport: mpibench.TCP, Ranks: 3})
		require.NoError(t, err)
		err = run(job)
		job.Close()
		require.ErrorContains(t, err, want)
	}
}
