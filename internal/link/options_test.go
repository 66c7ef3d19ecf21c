package link

import (
	"fmt"
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEnvironment(t *testing.T) {
	tests := []struct {
		env  string
		want Options
	}{
		{"", Options{}},
		{"nogso", Options{NoGSO: true}},
		{"nogro,nommsg", Options{NoGRO: true, NoMMsg: true}},
		{"portable", Options{Portable: true}},
		{"nogso,nogro,nommsg,portable", Options{NoGSO: true, NoGRO: true, NoMMsg: true, Portable: true}},
	}
	for _, test := range tests {
		var o Options
		require.NoError(t, o.applyEnv(test.env))
		require.Equal(t, test.want, o)
	}
	o := Options{NoGRO: true}
	require.NoError(t, o.applyEnv("nogso"))
	require.Equal(t, Options{NoGSO: true, NoGRO: true}, o, "merged with the program's options")

	for _, env := range []string{"gso", "NOGSO", "nogso, nogro", "nogso,", " "} {
		err := new(Options).applyEnv(env)
		require.ErrorContains(t, err, "SOFTRNIC_LINK")
		require.ErrorContains(t, err, "allowed are nogso, nogro, nommsg, portable and noshm")
	}
}

func TestEnvironmentReachesOpen(t *testing.T) {
	o := Options{Addr: netip.MustParseAddrPort("127.0.0.1:0")}
	t.Setenv(EnvVar, "portable")
	require.Equal(t, "udp-portable", open(t, o).Caps().Name)
	t.Setenv(EnvVar, "fast")
	_, err := OpenUDP(o)
	require.ErrorContains(t, err, `unknown word "fast"`)
}

func TestOpenErrors(t *testing.T) {
	for _, portable := range []bool{false, true} {
		taken := open(t, Options{Addr: netip.MustParseAddrPort("127.0.0.1:0"), Portable: portable})
		taken6 := open(t, Options{Addr: netip.MustParseAddrPort("[::1]:0"), Portable: portable})
		tests := []struct {
			name string
			o    Options
			want string
		}{
			{"no address", Options{}, "no address to bind"},
			{"unspecified", Options{Addr: netip.MustParseAddrPort("0.0.0.0:4791")}, "not a definite address"},
			{"unspecified v6", Options{Addr: netip.MustParseAddrPort("[::]:4791")}, "not a definite address"},
			{"multicast", Options{Addr: netip.MustParseAddrPort("224.0.0.1:4791")}, "multicast"},
			{"buffer", Options{Addr: netip.MustParseAddrPort("127.0.0.1:0"), RecvBuffer: -2}, "buffer sizes"},
			{"not ours", Options{Addr: netip.MustParseAddrPort("203.0.113.7:4791")}, "no interface of this machine has that address"},
			{"taken", Options{Addr: taken.LocalAddr()}, "in use by another process; use another address of 127.0.0.0/8 or another port"},
			{"taken v6", Options{Addr: taken6.LocalAddr()}, "in use by another process; use another address of this machine or another port"},
		}
		for _, test := range tests {
			t.Run(fmt.Sprint(test.name, "/portable=", portable), func(t *testing.T) {
				test.o.Portable = portable
				_, err := OpenUDP(test.o)
				require.ErrorContains(t, err, test.want)
			})
		}
	}
}

func TestBindErrors(t *testing.T) {
	tests := []struct {
		addr string
		err  error
		want string
	}{
		{"127.0.0.1:4791", errAddrInUse, "port 4791 is in use, perhaps by the kernel's rdma_rxe or another softrnic; use another address of 127.0.0.0/8 or another port"},
		{"127.0.0.1:100", syscall.EACCES, "ports below 1024 need privileges"},
		{"[fe80::1]:4791", syscall.EINVAL, "a link-local address needs its interface"},
		{"[::1]:4791", errNoFamily, "no such address family"},
		{"127.0.0.1:4791", syscall.ENOMEM, "bind 127.0.0.1:4791"},
	}
	for _, test := range tests {
		err := bindError(netip.MustParseAddrPort(test.addr), test.err)
		require.ErrorContains(t, err, test.want)
		require.ErrorIs(t, err, test.err)
	}
}

func TestMappedAddressIsIPv4(t *testing.T) {
	c := open(t, Options{Addr: netip.MustParseAddrPort("[::ffff:127.0.0.1]:0")})
	require.Equal(t, netip.MustParseAddr("127.0.0.1"), c.LocalAddr().Addr())
	require.NotZero(t, c.LocalAddr().Port())
}
