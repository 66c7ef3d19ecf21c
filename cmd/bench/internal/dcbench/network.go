package dcbench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// An sdpNetwork is a datacutter.Network by SDP on an adapter of its own.
type sdpNetwork struct {
	dev     *rnic.Device
	options sdp.Options // of all stacks
	stack   *sdp.Stack  // of the current run
	udp     uint16      // the adapter's port

	mu     sync.Mutex
	dialed []*sdp.Conn // in the current run
}

// openSDPNetwork opens an adapter with SDP on it. The caller must close it.
func openSDPNetwork(c Config) (*sdpNetwork, error) {
	// The paper measures copies through buffers, and the units are small.
	o := sdp.Options{Buffers: c.Buffers, BufferBytes: c.BufferBytes, ZeroCopy: -1}
	if err := o.FlowControl.UnmarshalText([]byte(strings.TrimPrefix(string(c.Transport), "sdp-"))); err != nil {
		return nil, err
	}
	dev, err := rnic.Open(rnic.Options{AnyPort: true})
	if err != nil {
		return nil, err
	}
	port, err := dev.QueryPort(1)
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	stack, err := sdp.New(dev, o)
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	return &sdpNetwork{dev: dev, options: o, stack: stack, udp: port.UDPPort}, nil
}

func (s *sdpNetwork) close() {
	s.stack.Close()
	s.dev.Close()
}

// endRun waits until the connections of a run have ended, and prepares a stack for the next run.
// It returns the number of data messages sent on dialed connections; data flows in that direction
// only.
func (s *sdpNetwork) endRun(ctx context.Context) (messages uint64, err error) {
	if err := s.stack.Shutdown(ctx); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.dialed {
		messages += c.Stats().MessagesSent
	}
	s.dialed = nil
	s.stack, err = sdp.New(s.dev, s.options)
	return messages, err
}

// Listen implements datacutter.Network.
func (s *sdpNetwork) Listen(context.Context) (net.Listener, error) {
	l, err := s.stack.Listen("sdp", ":0")
	if err != nil {
		return nil, err
	}
	return listener{l.(*sdp.Listener), address{l.Addr().(sdp.Addr).AddrPort, s.udp}}, nil
}

// Dial implements datacutter.Network.
func (s *sdpNetwork) Dial(ctx context.Context, addr string) (net.Conn, error) {
	to, err := parseAddress(addr)
	if err != nil {
		return nil, err
	}
	d := sdp.Dialer{Stack: s.stack, UDPPort: to.udp}
	conn, err := d.DialContext(ctx, "sdp", to.AddrPort.String())
	if err != nil {
		return nil, err
	}
	c := conn.(*sdp.Conn)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dialed = append(s.dialed, c)
	return c, nil
}

// A listener has an address that includes the UDP port of the adapter.
type listener struct {
	*sdp.Listener
	addr address
}

func (l listener) Addr() net.Addr { return l.addr }

// An address is an SDP port and the UDP port of its adapter: "127.0.0.1:40000/4791".
type address struct {
	netip.AddrPort
	udp uint16
}

func (address) Network() string { return "sdp" }

func (a address) String() string { return fmt.Sprintf("%v/%d", a.AddrPort, a.udp) }

func parseAddress(s string) (a address, err error) {
	sdpPart, udpPart, _ := strings.Cut(s, "/")
	udp, err := strconv.ParseUint(udpPart, 10, 16)
	if err == nil {
		a.udp = uint16(udp)
		a.AddrPort, err = netip.ParseAddrPort(sdpPart)
	}
	if err != nil {
		return a, fmt.Errorf("dcbench: malformed address %q, want one like 127.0.0.1:40000/4791: %w", s, err)
	}
	return a, nil
}
