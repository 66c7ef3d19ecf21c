package rankaddr

import (
	"context"
	"net/netip"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/hostaddr"
)

// manager is the process manager of rank 0 of two ranks on different nodes.
type manager struct {
	nodes  []int
	other  string // addresses of rank 1
	put    string
	fences int
}

func (m *manager) Rank() int                                   { return 0 }
func (m *manager) Size() int                                   { return len(m.nodes) }
func (m *manager) Node(rank int) int                           { return m.nodes[rank] }
func (m *manager) Put(_, value string) error                   { m.put = value; return nil }
func (m *manager) Fence(context.Context) error                 { m.fences++; return nil }
func (m *manager) Get(context.Context, string) (string, error) { return m.other, nil }

func TestChoose(t *testing.T) {
	const peer = "203.0.113.77"
	want := "" // if this host has no route to others
	if ip, err := hostaddr.Toward(netip.MustParseAddr(peer)); err == nil && !ip.IsLoopback() {
		want = ip.String() + ":4791-5790"
	}
	for _, c := range []struct {
		name, set string
		m         manager
		want      string
		fences    int
	}{
		{"one host", "", manager{nodes: []int{0, 0}}, "", 0},
		{"two hosts", "", manager{nodes: []int{0, 1}, other: "127.0.0.1,nonsense," + peer}, want, 1},
		{"the user's", "192.0.2.1", manager{nodes: []int{0, 1}, other: peer}, "192.0.2.1", 1},
		{"two nodes of one host", "", manager{nodes: []int{0, 1}, other: "127.0.0.1"}, "", 1},
		{"nothing told", "", manager{nodes: []int{0, 1}}, "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(EnvAddr, c.set)
			require.NoError(t, Choose(t.Context(), &c.m))
			require.Equal(t, c.fences, c.m.fences)
			require.NotContains(t, c.m.put, "127.0.0.1")
			require.Equal(t, c.want, os.Getenv(EnvAddr))
		})
	}
	require.Equal(t, "[2001:db8::1]:4791-5790", formatWithPorts(netip.MustParseAddr("2001:db8::1")))
}
