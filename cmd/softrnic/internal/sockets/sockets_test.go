package sockets_test

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/sockets"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
	"github.com/softrnic/softrnic/verbs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse(t *testing.T) {
	for text, want := range map[string]sockets.Addr{
		"sdp:192.0.2.1:7471":  {Network: "sdp", Host: "192.0.2.1", Port: 7471},
		"192.0.2.1:7471":      {Network: "sdp", Host: "192.0.2.1", Port: 7471},
		"tcp:localhost:80":    {Network: "tcp", Host: "localhost", Port: 80},
		"tcp::8080":           {Network: "tcp", Port: 8080},
		"sdp:udp:1":           {Network: "sdp", Host: "udp", Port: 1},
		":0":                  {Network: "sdp"},
		"sdp:[2001:db8::1]:1": {Network: "sdp", Host: "2001:db8::1", Port: 1},
	} {
		p, err := sockets.ParseAddr(text)
		require.NoError(t, err, text)
		require.Equal(t, want, p, text)
		again, err := sockets.ParseAddr(p.String())
		require.NoError(t, err)
		require.Equal(t, p, again)
		var flag sockets.Addr
		require.NoError(t, flag.Set(text))
		require.Equal(t, want, flag)
	}
	for text, why := range map[string]string{
		"":                "want sdp:[HOST]:PORT or tcp:[HOST]:PORT",
		"tcp:localhost":   "for example sdp:192.0.2.1:7471",
		"udp:localhost:1": `"udp:localhost:1": unknown network udp: want sdp:[HOST]:PORT or tcp:[HOST]:PORT`,
		"udp:1":           "unknown network udp: want sdp:[HOST]:PORT",
		"sdp:h:http":      `port "http": want 0 to 65535`,
		"sdp:h:70000":     `port "70000": want 0 to 65535`,
		"::1:80":          "for example sdp:192.0.2.1:7471",
	} {
		_, err := sockets.ParseAddr(text)
		require.ErrorContains(t, err, why, text)
	}
	require.Empty(t, sockets.Addr{}.String())
}

// sendWord sends a message from a dialer to a listener.
func sendWord(t *testing.T, from, to *sockets.Sockets, at sockets.Addr) {
	t.Helper()
	ctx := toolstest.Context(t)
	l, err := to.Listen(ctx, at)
	require.NoError(t, err)
	defer l.Close()
	where, err := sockets.ParseAddr(sockets.FormatAddr(l.Addr()))
	require.NoError(t, err)
	c, err := from.Dial(ctx, where)
	require.NoError(t, err)
	d, err := l.Accept()
	require.NoError(t, err)
	_, err = io.WriteString(c, "word")
	require.NoError(t, err)
	require.NoError(t, c.Close())
	text, err := io.ReadAll(d)
	require.NoError(t, err)
	require.Equal(t, "word", string(text))
	require.NoError(t, d.Close())
}

// TestDevices checks that devices are opened where they are needed, or that there is one for all.
func TestDevices(t *testing.T) {
	for name, place := range map[string]rdmacm.DeviceSource{"opened": toolstest.Anywhere, "one": {Device: toolstest.Device(t, rnic.Options{})}} {
		t.Run(name, func(t *testing.T) {
			from, to := sockets.New(place, sdp.Options{}), sockets.New(toolstest.Anywhere, sdp.Options{})
			sendWord(t, from, to, sockets.Addr{Network: "sdp"})
			sendWord(t, to, from, sockets.Addr{Network: "sdp"}) // a listener that has dialed
			sendWord(t, from, from, sockets.Addr{Network: "tcp", Host: "localhost"})
			require.NoError(t, from.Close(toolstest.Context(t)))
			require.NoError(t, to.Close(toolstest.Context(t)))
		})
	}
	s := sockets.New(toolstest.Anywhere, sdp.Options{})
	sendWord(t, s, s, sockets.Addr{Network: "sdp", Host: "127.94.1.1"}) // a device each
	require.NoError(t, s.Close(toolstest.Context(t)))
}

// TestRefusals checks the errors of operations that fail, with their address.
func TestRefusals(t *testing.T) {
	ctx := toolstest.Context(t)
	s := sockets.New(toolstest.Anywhere, sdp.Options{})
	defer func() { require.NoError(t, s.Close(ctx)) }()
	_, err := s.Listen(ctx, sockets.Addr{Network: "sdp", Host: "203.0.113.1"})
	require.ErrorContains(t, err, "no interface of this machine has that address")
	_, err = s.Dial(ctx, sockets.Addr{Network: "sdp", Host: "0.0.0.0", Port: 1})
	require.ErrorContains(t, err, "server address 0.0.0.0: not a unicast address")
	_, err = s.Dial(ctx, sockets.Addr{Network: "tcp", Host: "127.0.0.1", Port: 1})
	require.ErrorIs(t, err, syscall.ECONNREFUSED)

	elsewhere := sockets.New(rdmacm.DeviceSource{Open: func(at netip.AddrPort) (verbs.Device, error) {
		return rnic.Open(rnic.Options{Addr: netip.MustParseAddrPort("127.94.1.2:5000")})
	}}, sdp.Options{})
	_, err = elsewhere.Listen(ctx, sockets.Addr{Network: "sdp"})
	require.ErrorContains(t, err, "device listens on UDP port 5000")
	require.NoError(t, elsewhere.Close(ctx))

	bad := sockets.New(toolstest.Anywhere, sdp.Options{Buffers: -1})
	_, err = bad.Listen(ctx, sockets.Addr{Network: "sdp"})
	require.ErrorContains(t, err, "Options.Buffers: -1 out of range")
	require.NoError(t, bad.Close(ctx))
}

// TestDialUsesFreePort checks that a dialer uses another UDP port if 4791 is in use.
func TestDialUsesFreePort(t *testing.T) {
	var ports []uint16
	place := rdmacm.DeviceSource{Open: func(at netip.AddrPort) (verbs.Device, error) {
		ports = append(ports, at.Port())
		if at.Port() != 0 || len(ports) == 1 {
			return nil, fmt.Errorf("taken: %w", syscall.EADDRINUSE)
		}
		return nil, errors.New("the end")
	}}
	s := sockets.New(place, sdp.Options{})
	_, err := s.Dial(t.Context(), sockets.Addr{Network: "sdp", Host: "192.0.2.1", Port: 1})
	if err != nil && strings.Contains(err.Error(), "no way to") {
		t.Skip("this machine has no route to others")
	}
	require.ErrorContains(t, err, "the end")
	require.Equal(t, []uint16{4791, 0}, ports)
}
