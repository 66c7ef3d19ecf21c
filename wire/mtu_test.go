package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire"
)

func TestPathMTU(t *testing.T) {
	for _, c := range []struct{ mtu, v4, v6 int }{
		{0, 0, 0},
		{335, 0, 0},
		{336, 256, 0},
		{340, 256, 256},
		{1280, 1024, 1024}, // the minimum of IPv6
		{1500, 1024, 1024}, // Ethernet; rxe says 1024
		{4175, 2048, 2048},
		{4176, 4096, 2048}, // rxe says 4096
		{4180, 4096, 4096},
		{4400, 4096, 4096}, // rxe says 4096
		{9000, 4096, 4096},
		{65536, 4096, 4096}, // Linux loopback
	} {
		require.Equal(t, c.v4, wire.PathMTU(c.mtu, false), c.mtu)
		require.Equal(t, c.v6, wire.PathMTU(c.mtu, true), c.mtu)
	}
}

// TestMTUFitsEveryOpcode checks that a packet with a payload of the path MTU fits in the interface
// MTU. (RDMA over UD, softrnic's own, has 4 bytes more over IPv6: see docs/ud-rdma.md.)
func TestMTUFitsEveryOpcode(t *testing.T) {
	for code := range 256 {
		i := wire.Opcode(code).Info()
		if _, most := i.PayloadRange(wire.MaxMTU); !i.Valid || most == 0 {
			continue
		}
		for mtu := 300; mtu < 10_000; mtu++ {
			around := wire.UDPLen + i.HeaderLen + wire.ICRCLen
			if n := wire.PathMTU(mtu, false); n > 0 {
				require.LessOrEqual(t, wire.IPv4Len+around+n, mtu, i.Name)
			}
			if n := wire.PathMTU(mtu, true); n > 0 && i.Class != wire.ClassUDX {
				require.LessOrEqual(t, wire.IPv6Len+around+n, mtu, i.Name)
			}
		}
	}
}
