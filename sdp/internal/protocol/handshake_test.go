package protocol

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/internal/flow"
)

func plainConfig(d flow.Control) Config {
	return Config{FlowControl: d, Buffers: 8, BufferBytes: 1000, Window: 500, Queue: 16, Receives: 16, MaxAdverts: 3}
}

func helloOf(c *Config) *bsdh.Hello {
	return c.Hello(netip.MustParseAddrPort("192.0.2.1:50000"), netip.MustParseAddr("192.0.2.2"))
}

// TestNegotiation checks that each end has the parameters of the other.
func TestNegotiation(t *testing.T) {
	for _, d := range allFlowControls {
		a, b := plainConfig(d), plainConfig(flow.NIC)
		a.Ring = Memory{Bytes: make([]byte, a.RingBytes()), Addr: 100, RKey: 7}
		hello := helloOf(&a)
		b, err := b.Negotiate(hello)
		require.NoError(t, err)
		require.Equal(t, d, b.FlowControl)
		b.Buffers = 9
		b.Ring = Memory{Bytes: make([]byte, b.RingBytes()), Addr: 200, RKey: 8}
		ofA, err := PeerFromHello(hello)
		require.NoError(t, err)
		ofB, err := a.PeerFromHelloAck(b.HelloAck())
		require.NoError(t, err)
		wantA := Peer{FlowControl: d, Bufs: 8, BufferBytes: 1016, MaxAdverts: 3, Dialed: true}
		wantB := Peer{FlowControl: d, Bufs: 9, BufferBytes: 1016, MaxAdverts: 3}
		switch d {
		case flow.Credit:
			wantA.Bufs, wantB.Bufs = 10, 11
			wantA.ShortHeaders, wantB.ShortHeaders = true, true
		case flow.NIC:
			wantA.Ring, wantB.Ring = 8500, 9500 // a window longer
		case flow.RDMA:
			wantA.Ring, wantB.Ring = 8000, 9000
		}
		if d != flow.Credit {
			wantA.Window, wantA.Addr, wantA.RKey, wantA.Buffer = 500, 100, 7, 8000
			wantB.Window, wantB.Addr, wantB.RKey, wantB.Buffer = 500, 200, 8, 9000
		}
		require.Equal(t, wantA, ofA)
		require.Equal(t, wantB, ofB)
	}
}

// TestWindowOfOtherFlowControl checks that a configuration for another flow control may have an unsuitable
// window.
func TestWindowOfOtherFlowControl(t *testing.T) {
	c := plainConfig(flow.Credit)
	for _, window := range []int{0, -5, 4001, 1 << 20} {
		c.Window = window
		require.NoError(t, c.Validate())
		a := plainConfig(flow.NIC)
		b, err := c.Negotiate(helloOf(&a))
		require.NoError(t, err)
		require.NoError(t, b.Validate())
		require.Positive(t, b.HelloAck().Bufs)
	}
}

func TestBadHello(t *testing.T) {
	nicConfig := plainConfig(flow.NIC)
	nicConfig.Ring = Memory{Bytes: make([]byte, nicConfig.RingBytes())}
	for cause, spoil := range map[string]func(h *bsdh.Hello){
		"version 1.1":                 func(h *bsdh.Hello) { h.Version = 0x11 },
		"MaxAdverts":                  func(h *bsdh.Hello) { h.MaxAdverts = 0 },
		"no receives":                 func(h *bsdh.Hello) { h.Bufs = 0 },
		"ring of 0 bytes":             func(h *bsdh.Hello) { h.Extension.Ring = 0 },
		"ring of 2147483648 bytes":    func(h *bsdh.Hello) { h.Extension.Ring = 1 << 31 },
		"window of 0 bytes":           func(h *bsdh.Hello) { h.Extension.Window = 0 },
		"window of 8501 bytes":        func(h *bsdh.Hello) { h.Extension.Window = 8501 },
		"receive buffers of 79 bytes": func(h *bsdh.Hello) { h.Extension = bsdh.Extension{}; h.LocalRcvSz = 79 },
	} {
		h := helloOf(&nicConfig)
		_, err := PeerFromHello(h)
		require.NoError(t, err)
		spoil(h)
		_, err = nicConfig.Negotiate(h)
		if err == nil {
			_, err = PeerFromHello(h)
		}
		require.ErrorIs(t, err, ErrProtocol)
		require.ErrorContains(t, err, cause)
	}
	ack := nicConfig.HelloAck()
	rdmaConfig := plainConfig(flow.RDMA)
	_, err := rdmaConfig.PeerFromHelloAck(ack)
	require.ErrorIs(t, err, ErrProtocol)
	require.ErrorContains(t, err, "flow control nic, want rdma")
	ack.MaxAdverts = 0
	_, err = nicConfig.PeerFromHelloAck(ack)
	require.ErrorContains(t, err, "MaxAdverts")
}

// TestHugeBuffers checks that a peer may announce buffers of any size.
func TestHugeBuffers(t *testing.T) {
	e := newEvil(t, flow.Credit)
	e.core.Start(Peer{FlowControl: flow.Credit, Bufs: 20, BufferBytes: 1<<32 - 1, MaxAdverts: 1})
	require.Equal(t, 800, e.core.Write(make([]byte, 1000)), "in messages of our size")
	require.NoError(t, e.core.Err())
}

func TestValidate(t *testing.T) {
	for cause, spoil := range map[string]func(c *Config){
		"Buffers: 0 out of range [1, 16384]":          func(c *Config) { c.Buffers = 0 },
		"Buffers: 16385 out of range":                 func(c *Config) { c.Buffers = 1<<14 + 1 },
		"BufferBytes: 63 out of range [64, 16777216]": func(c *Config) { c.BufferBytes = 63 },
		"are more than 1073741824 bytes":              func(c *Config) { c.Buffers, c.BufferBytes = 1<<14, 1<<17 },
		"Window: 0 out of range [1, 4000]":            func(c *Config) { c.Window = 0 },
		"Window: 4001 out of range [1, 4000]":         func(c *Config) { c.Window = 4001 },
		"Queue: 3 out of range [4, 32768]":            func(c *Config) { c.Queue = 3 },
		"Receives: 7 out of range [8, 32768]":         func(c *Config) { c.Receives = 7 },
		"Receives: 32769 out of range [8, 32768]":     func(c *Config) { c.Receives = 1<<15 + 1 },
	} {
		c := plainConfig(flow.NIC)
		require.NoError(t, c.Validate())
		spoil(&c)
		require.ErrorContains(t, c.Validate(), cause)
	}
}
