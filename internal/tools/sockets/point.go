package sockets

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// The networks.
const (
	SDP = "sdp"
	TCP = "tcp"
)

// Point is where a stream ends: "sdp:192.0.2.1:7471". It is a flag's value.
type Point struct {
	Network string // SDP or TCP
	Host    string // a name or an address; "" is any of this machine
	Port    uint16
}

// Parse reads a point: the network, which may be left out for sdp, a host and a
// port.
func Parse(text string) (Point, error) {
	network, rest := SDP, text
	for _, n := range []string{SDP, TCP} {
		if after, ok := strings.CutPrefix(text, n+":"); ok {
			network, rest = n, after
		}
	}
	host, service, err := net.SplitHostPort(rest)
	if err != nil {
		return Point{}, fmt.Errorf("%q: want for example sdp:192.0.2.1:7471, tcp:localhost:80 or tcp::8080", text)
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return Point{}, fmt.Errorf("%q: port %q is no number from 0 to 65535", text, service)
	}
	return Point{network, host, uint16(port)}, nil
}

// String is the point as Parse reads it, and "" for none.
func (p Point) String() string {
	if p.Network == "" {
		return ""
	}
	return p.Network + ":" + p.address()
}

func (p Point) address() string { return net.JoinHostPort(p.Host, strconv.Itoa(int(p.Port))) }

// Set implements pflag.Value.
func (p *Point) Set(text string) (err error) {
	*p, err = Parse(text)
	return err
}

// Type implements pflag.Value.
func (*Point) Type() string { return "point" }

// Name is an address with its network, as Parse reads it.
func Name(a net.Addr) string { return a.Network() + ":" + a.String() }
