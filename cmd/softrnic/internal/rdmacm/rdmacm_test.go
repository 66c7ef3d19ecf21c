package rdmacm_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		host   string
		format rdmacm.Format
		want   string // address or error
	}{
		{"192.0.2.1", "", "192.0.2.1"},
		{"::ffff:192.0.2.1", "", "192.0.2.1"},
		{"2001:db8::1", rdmacm.FormatIPv6, "2001:db8::1"},
		{"2001:db8::1", rdmacm.FormatIP, "2001:db8::1"},
		{"localhost", rdmacm.FormatName, "127.0.0.1"},
		{"localhost", rdmacm.FormatIP, `-f ip: "localhost" is not an address`},
		{"192.0.2.1", rdmacm.FormatIPv6, "-f ipv6: 192.0.2.1 is not an IPv6 address"},
		{"fe80::1%eth0", "", "fe80::1%eth0"},
		{"2001:db8::1%eth0", "", "2001:db8::1"},
		{"host.invalid", "", `"host.invalid" is neither an address nor a host name`},
	} {
		got, err := rdmacm.Resolve(toolstest.Context(t), c.host, c.format)
		if err != nil {
			require.ErrorContains(t, err, c.want)
			continue
		}
		require.Equal(t, c.want, got.String(), c.host)
	}
	got, err := rdmacm.ResolveBind(toolstest.Context(t), "", rdmacm.FormatIP)
	require.NoError(t, err)
	require.False(t, got.IsValid())
}

// TestDeviceAddresses checks the addresses at which devices are opened.
func TestDeviceAddresses(t *testing.T) {
	for _, c := range []struct{ server, bind, at string }{
		{"127.0.0.1", "", "127.0.0.1:0"}, // any port, because a server may use 4791
		{"127.94.1.1", "", "127.0.0.1:0"},
		{"127.0.0.1", "127.0.0.9", "127.0.0.9:4791"},
		{"127.0.0.1", "127.0.0.1", "127.0.0.1:0"}, // any port, because the server uses 4791
		{"192.0.2.77", "192.0.2.1", "192.0.2.1:4791"},
		{"2001:db8::2", "2001:db8::1", "[2001:db8::1]:4791"},
		{"2001:db8::2", "2001:db8::2", "[2001:db8::2]:0"},
		{"0.0.0.0", "", "server address 0.0.0.0: not a unicast address"},
		{"ff02::1", "", "server address ff02::1: not a unicast address"},
	} {
		stop := errors.New("that was all")
		var at netip.AddrPort
		p := rdmacm.DeviceSource{Open: func(a netip.AddrPort) (verbs.Device, error) { at = a; return nil, stop }}
		bind := netip.Addr{}
		if c.bind != "" {
			bind = netip.MustParseAddr(c.bind)
		}
		_, err := rdmacm.OpenClient(p, netip.MustParseAddr(c.server), bind)
		if !errors.Is(err, stop) {
			require.ErrorContains(t, err, c.at)
			continue
		}
		require.Equal(t, c.at, at.String(), "%+v", c)
	}
}

// elsewhere opens devices at free addresses instead of the requested ones, and fails for some.
func elsewhere(asked *[]netip.AddrPort, refused func(netip.Addr) bool) rdmacm.DeviceSource {
	return rdmacm.DeviceSource{Open: func(at netip.AddrPort) (verbs.Device, error) {
		*asked = append(*asked, at)
		if refused(at.Addr()) {
			return nil, fmt.Errorf("in use")
		}
		return rnic.Open(rnic.Options{})
	}}
}

// TestServer checks that a server listens at every address, except those where it cannot.
func TestServer(t *testing.T) {
	var asked []netip.AddrPort
	var skipped []error
	localhost := netip.MustParseAddr("127.0.0.1")
	skip := func(err error) { skipped = append(skipped, err) }
	refused := func(a netip.Addr) bool { return a != localhost && a.Is4() }

	s, err := rdmacm.Listen(elsewhere(&asked, refused), netip.Addr{}, 0, cm.ListenOptions{}, skip)
	require.NoError(t, err)
	require.Contains(t, asked, netip.AddrPortFrom(localhost, 4791))
	require.Len(t, s.Addrs(), len(asked)-len(skipped))
	for _, a := range s.Addrs() {
		require.Equal(t, s.Addrs()[0].Port(), a.Port(), "the same everywhere")
	}
	require.NoError(t, s.Close())

	asked, skipped = nil, nil
	s, err = rdmacm.Listen(elsewhere(&asked, refused), netip.IPv4Unspecified(), 77, cm.ListenOptions{}, skip)
	require.NoError(t, err)
	for _, a := range asked {
		require.True(t, a.Addr().Is4())
	}
	require.Len(t, s.Addrs(), 1)
	require.EqualValues(t, 77, s.Addrs()[0].Port())
	require.NoError(t, s.Close())

	skipped = nil
	_, err = rdmacm.Listen(elsewhere(&asked, func(netip.Addr) bool { return true }), netip.Addr{}, 0, cm.ListenOptions{}, skip)
	require.ErrorContains(t, err, "listen at 127.0.0.1: in use")
	require.Empty(t, skipped)

	dev := toolstest.Device(t, rnic.Options{Addr: netip.MustParseAddrPort("127.0.0.1:0"), AnyPort: true})
	_, err = rdmacm.ListenUD(rdmacm.DeviceSource{Device: dev}, netip.Addr{}, 0, cm.ListenOptions{}, skip)
	require.ErrorContains(t, err, "want 4791: RDMA-CM cannot carry the UDP port of a server")
}

// TestArrivals checks that clients of all devices are accepted until the server stops.
func TestArrivals(t *testing.T) {
	var asked []netip.AddrPort
	s, err := rdmacm.ListenUD(elsewhere(&asked, func(netip.Addr) bool { return false }), netip.Addr{}, 0, cm.ListenOptions{}, func(error) {})
	require.NoError(t, err)
	_, client := toolstest.Manager(t)
	ctx := toolstest.Context(t)
	dial := func(at netip.AddrPort) <-chan error {
		ch := make(chan error, 1)
		go func() {
			_, err := client.DialUD(ctx, at, cm.UDDialOptions{})
			ch <- err
		}()
		return ch
	}
	for _, at := range s.Addrs() {
		dialed := dial(at)
		a, err := s.Accept(ctx)
		require.NoError(t, err)
		require.Equal(t, at.Addr(), a.Endpoint.Addr())
		require.NoError(t, a.Request.Reject(0, nil))
		var refused *cm.UDRejectError
		require.ErrorAs(t, <-dialed, &refused)
	}

	// A client that waits is rejected, and no other is accepted.
	waiting := dial(s.Addrs()[0])
	go func() {
		// The request may or may not have arrived: it is rejected either way.
		s.Stop()
	}()
	var refused *cm.UDRejectError
	require.ErrorAs(t, <-waiting, &refused)
	_, err = s.Accept(ctx)
	require.ErrorIs(t, err, cm.ErrClosed)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
}

// TestEach checks that Each returns the first error, and waits for all.
func TestEach(t *testing.T) {
	const n = 1000
	var done [n]bool
	require.NoError(t, rdmacm.ForEach(t.Context(), n, func(_ context.Context, i int) error { done[i] = true; return nil }))
	require.NotContains(t, done, false)
	want := errors.New("enough")
	err := rdmacm.ForEach(t.Context(), n, func(ctx context.Context, i int) error {
		if i == 100 {
			return want
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	require.ErrorIs(t, err, want)

	idle, w := watch.Start(t.Context(), time.Millisecond)
	defer w.Stop()
	err = rdmacm.ForEach(idle, 1, func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() })
	require.EqualError(t, rdmacm.ExplainIdle(err, "%d of 2", 1), "no progress: 1 of 2")
	require.Equal(t, want, rdmacm.ExplainIdle(want, "nothing"))
}

func TestFlags(t *testing.T) {
	var f rdmacm.Format
	for _, s := range []string{"name", "ip", "ipv6", "IPv6"} {
		require.NoError(t, f.Set(s))
	}
	require.Equal(t, rdmacm.FormatIPv6, f)
	require.ErrorContains(t, f.Set("gid"), "on Ethernet give an IP address, from which the GID is made")
	require.ErrorContains(t, f.Set("lid"), "want name, ip or ipv6")

	space := cm.TCP
	p := rdmacm.PortSpace{To: &space}
	require.Equal(t, "tcp", p.String())
	require.NoError(t, p.Set("IB"))
	require.Equal(t, cm.IB, space)
	require.Equal(t, "ib", p.String())
	require.ErrorContains(t, p.Set("udp"), "want tcp or ib")

	var c rdmacm.TimeoutCode
	require.Zero(t, c.AckTimeout())
	require.NoError(t, c.Set("14"))
	require.Equal(t, verbs.AckTimeout(14), c.AckTimeout())
	require.NoError(t, c.Set("0"))
	require.Negative(t, c.AckTimeout(), "for ever")
	require.Equal(t, "0", c.String())
	require.ErrorContains(t, c.Set("32"), "want 0 to 31")
	require.ErrorContains(t, c.Set("soon"), "want 0 to 31")
}

func listTerms(words ...string) (t oob.Params) {
	for i := 0; i < len(words); i += 2 {
		t.Add(words[i], words[i+1])
	}
	return t
}

// TestTerms checks that parameters fit into private data, which is padded with zeros, also with the
// longest values.
func TestTerms(t *testing.T) {
	for _, terms := range []oob.Params{
		listTerms("test", "rping"),
		listTerms("test", "rping", "-S", "65535", "-C", strconv.Itoa(math.MaxInt)),
		listTerms("test", "ucmatose", "-c", "65536", "-C", "1073741824", "-S", "1073741824"),
	} {
		b := rdmacm.EncodeParams(terms)
		require.LessOrEqual(t, len(b), rdmacm.ParamsLen)
		got, ok := rdmacm.ParseParams(append(b, make([]byte, 100)...))
		require.True(t, ok)
		require.Equal(t, terms, got)
		require.NoError(t, rdmacm.CheckParams(terms, got))
	}
	for _, b := range []string{"", "\x00\x00", "softrnic", "hello", "softrnic 2 rping"} {
		_, ok := rdmacm.ParseParams([]byte(b))
		require.False(t, ok, b)
	}
	err := rdmacm.CheckParams(listTerms("test", "rping", "-S", "64"), listTerms("test", "ucmatose", "-c", "1"))
	require.EqualError(t, err, "test parameters of the two ends differ: test is rping here and ucmatose at the peer")
}
