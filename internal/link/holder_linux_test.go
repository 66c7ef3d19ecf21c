package link

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRXEHoldsPort parses the files of Linux 6.1 with and without rdma_rxe.
func TestRXEHoldsPort(t *testing.T) {
	const head = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n"
	for _, c := range []struct {
		sockets string
		holds   bool
	}{
		{head + "  272: 00000000:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 11007 2 000000005436cbd7 0\n", true},
		{head + "  272: 00000000000000000000000000000000:12B7 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 11008 2 0000000083a48c69 0\n", true},
		{head + "  272: 0100007F:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 11007 2 000000005436cbd7 0\n", false},
		{head + "  272: 00000000:0044 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 11007 2 000000005436cbd7 0\n", false},
		{head, false},
		{"", false},
	} {
		require.Equal(t, c.holds, holdsPort(c.sockets), c.sockets)
	}
	require.True(t, hasModule("crc32_pclmul 16384 0 - Live\nrdma_rxe 131072 0 - Live 0x0\n", "rdma_rxe"))
	require.False(t, hasModule("rdma_rxe_old 1 0\nib_core 2 1 rdma_rxe\n", "rdma_rxe"))
}
