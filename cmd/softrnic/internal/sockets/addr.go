package sockets

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// The networks.
const (
	SDP = "sdp"
	TCP = "tcp"
)

// An Addr is the address of a stream: "sdp:192.0.2.1:7471". It is the value of a flag.
type Addr struct {
	Network string // SDP or TCP
	Host    string // a name or an address; "" is any of this machine
	Port    uint16
}

// foreignNetworks are networks of other programs. A host with such a name must be written with its
// network.
var foreignNetworks = []string{"udp", "udp4", "udp6", "tcp4", "tcp6", "unix", "http", "https", "rdma", "ib"}

// addrSyntax is the syntax of ParseAddr for error texts.
const addrSyntax = "want sdp:[HOST]:PORT or tcp:[HOST]:PORT, for example sdp:192.0.2.1:7471, tcp:localhost:80 or tcp::8080"

// ParseAddr parses an address: an optional network (default sdp), a host and a port.
func ParseAddr(text string) (Addr, error) {
	network, rest := SDP, text
	if word, _, _ := strings.Cut(text, ":"); slices.Contains(foreignNetworks, word) {
		return Addr{}, fmt.Errorf("%q: unknown network %s: %s", text, word, addrSyntax)
	}
	for _, n := range []string{SDP, TCP} {
		if after, ok := strings.CutPrefix(text, n+":"); ok {
			network, rest = n, after
		}
	}
	host, service, err := net.SplitHostPort(rest)
	if err != nil {
		return Addr{}, fmt.Errorf("%q: %s", text, addrSyntax)
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return Addr{}, fmt.Errorf("%q: port %q: want 0 to 65535", text, service)
	}
	return Addr{network, host, uint16(port)}, nil
}

// String returns the form that ParseAddr reads, or "" for the zero Addr.
func (p Addr) String() string {
	if p.Network == "" {
		return ""
	}
	return p.Network + ":" + p.hostPort()
}

func (p Addr) hostPort() string { return net.JoinHostPort(p.Host, strconv.Itoa(int(p.Port))) }

// Set implements pflag.Value.
func (p *Addr) Set(text string) (err error) {
	*p, err = ParseAddr(text)
	return err
}

// Type implements pflag.Value.
func (*Addr) Type() string { return "point" }

// FormatAddr returns an address with its network, as ParseAddr reads it.
func FormatAddr(a net.Addr) string { return a.Network() + ":" + a.String() }
