package mpi_test

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
)

// TestForeignConnections checks that foreign connections are rejected without effect on the job.
func TestForeignConnections(t *testing.T) {
	job(t, 3, mpi.Options{Net: mpi.TCP}, func(w mpi.World) error {
		at, err := w.Address("tcp", (w.Rank()+1)%3)
		require.NoError(t, err)
		for _, says := range []string{"", "GET / HTTP/1.1\r\n\r\n", "MPTT", strings.Repeat("\x00", 20), strings.Repeat("MPTT", 1000)} {
			require.NoError(t, dialAndSend(at, says))
		}
		for range 10 {
			if err := w.Allreduce(mpi.Of([]int64{1}), mpi.Of([]int64{0}), mpi.Sum); err != nil {
				return err
			}
		}
		return nil
	})
}

// dialAndSend connects to an address and sends a text.
func dialAndSend(at, says string) error {
	c, err := net.Dial("tcp", at)
	if err != nil {
		return err
	}
	_, _ = c.Write([]byte(says)) // the rank may have closed the connection
	return c.Close()
}
