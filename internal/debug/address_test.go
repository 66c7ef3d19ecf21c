package debug

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseAddress(t *testing.T) {
	long := "/" + strings.Repeat("x", maxSocketPath)
	for _, c := range []struct{ in, want, err string }{
		{"unix:/tmp/x.sock", "unix:/tmp/x.sock", ""},
		{"127.0.0.1:9479", "127.0.0.1:9479", ""},
		{"127.3.2.1:0", "127.3.2.1:0", ""},
		{"localhost:80", "127.0.0.1:80", ""},
		{"[::1]:9479", "[::1]:9479", ""},
		{"0.0.0.0:9479", "", "0.0.0.0 is not a loopback address"},
		{"[::]:9479", "", ":: is not a loopback address"},
		{"192.0.2.1:9479", "", "192.0.2.1 is not a loopback address"},
		{"[2001:db8::1]:9479", "", "2001:db8::1 is not a loopback address"},
		{":9479", "", "want an IP address and a port"},
		{"example.com:9479", "", "want an IP address and a port"},
		{"127.0.0.1:http", "", "want an IP address and a port"},
		{"127.0.0.1:99999", "", "want an IP address and a port"},
		{"127.0.0.1", "", `want "auto", "off", unix:/path or a loopback address`},
		{"", "", `want "auto", "off", unix:/path or a loopback address`},
		{"unix:", "", "the path is missing"},
		{"unix:" + long, "", "the path has 104 bytes, a socket's may have 103"},
	} {
		a, err := ParseAddress(c.in)
		if c.err != "" {
			require.ErrorContains(t, err, c.err, c.in)
			require.Equal(t, err, CheckAddress(c.in))
			continue
		}
		require.NoError(t, err, c.in)
		require.Equal(t, c.want, a.String())
		again, err := ParseAddress(a.String())
		require.NoError(t, err)
		require.Equal(t, a, again)
		require.NoError(t, CheckAddress(c.in))
	}
	require.NoError(t, CheckAddress(Auto))
	require.NoError(t, CheckAddress(Off))
}
