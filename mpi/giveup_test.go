package mpi_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/verbs"
)

// TestGiveUp checks the times of all fabrics for several values of GiveUp: the sum of the longest
// pause between probes, the silence, and a polling interval of half a second is not longer than it.
func TestGiveUp(t *testing.T) {
	for give, want := range map[time.Duration]struct {
		timeout uint8
		retries int
	}{0: {16, 11}, time.Second: {12, 1}, 3 * time.Second: {14, 3}, 20 * time.Second: {17, 15}, time.Hour: {24, 15}} {
		ud, tcp, timeout, retries, pause := mpi.GiveUps(mpi.Options{GiveUp: give})
		if give == 0 {
			give = 10 * time.Second
		}
		require.Equal(t, ud, tcp)
		require.LessOrEqual(t, ud+pause, give+time.Second/2, give)
		require.Equal(t, verbs.AckTimeout(want.timeout), timeout, give)
		require.Equal(t, want.retries, retries, give)
		require.LessOrEqual(t, 7*time.Second<<want.timeout>>16, ud, give)
	}
	// Options take precedence.
	o := mpi.Options{GiveUp: time.Minute}
	o.UD.GiveUp, o.RDMA.Connect.AckTimeout = time.Second, verbs.AckTimeout(9)
	ud, tcp, timeout, _, _ := mpi.GiveUps(o)
	require.Equal(t, time.Second, ud)
	require.Equal(t, 45*time.Second, tcp)
	require.Equal(t, verbs.AckTimeout(9), timeout)
	t.Setenv("SOFTRNIC_MPI_GIVE_UP", "0.1s")
	_, err := initAlone(mpi.Options{})
	require.ErrorContains(t, err, "SOFTRNIC_MPI_GIVE_UP=0.1s: want a duration such as 30s, at least 1s")
}
