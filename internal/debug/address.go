package debug

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
)

// Auto as an address is a Unix socket of the process in the user's runtime
// directory.
const Auto = "auto"

// Off as an address disables the endpoint.
const Off = "off"

// maxSocketPath is the maximum length of the path of a Unix socket on every
// system: sun_path has 104 bytes on BSD and macOS, 108 on Linux, with a final
// zero.
const maxSocketPath = 103

// An Address is the address of a server.
type Address struct {
	Network string // "unix" or "tcp"
	Target  string // path, or IP address and port
}

// String implements fmt.Stringer.
func (a Address) String() string {
	if a.Network == "unix" {
		return "unix:" + a.Target
	}
	return a.Target
}

// CheckAddress returns an error if s is not an address for Serve, or Off.
func CheckAddress(s string) error {
	if s == Auto || s == Off {
		return nil
	}
	_, err := ParseAddress(s)
	return err
}

// ParseAddress parses "unix:/path", "127.0.0.1:9479", "[::1]:9479" or
// "localhost:9479".
func ParseAddress(s string) (Address, error) {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		return unixAddress(path)
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return Address{}, fmt.Errorf("debug endpoint %q: want %q, %q, unix:/path or a loopback address with a port such as 127.0.0.1:9479", s, Auto, Off)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	at, err := netip.ParseAddrPort(net.JoinHostPort(host, port))
	if err != nil {
		return Address{}, fmt.Errorf("debug endpoint %q: want an IP address and a port number, for example 127.0.0.1:9479", s)
	}
	if !at.Addr().Unmap().IsLoopback() {
		return Address{}, fmt.Errorf("debug endpoint %q: %v is not a loopback address; the endpoint exposes memory profiles and every counter, so serve it on 127.0.0.1:%d and use a tunnel",
			s, at.Addr(), at.Port())
	}
	return Address{"tcp", at.String()}, nil
}

func unixAddress(path string) (Address, error) {
	switch {
	case path == "":
		return Address{}, fmt.Errorf("debug endpoint %q: the path is missing", "unix:")
	case len(path) > maxSocketPath:
		return Address{}, fmt.Errorf("debug endpoint unix:%s: the path has %d bytes, a socket's may have %d", path, len(path), maxSocketPath)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return Address{}, fmt.Errorf("debug endpoint unix:%s: %w", path, err)
	}
	if len(abs) > maxSocketPath {
		abs = path
	}
	return Address{"unix", abs}, nil
}
