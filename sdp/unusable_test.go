package sdp_test

import (
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/misuse"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
	"github.com/softrnic/softrnic/verbs"
)

// TestUnusable calls every exported function and method with nil, zero and closed handles and with
// arguments out of range: each returns, with an error if it has one.
func TestUnusable(t *testing.T) {
	e := newEnds(t, rnic.Options{}, sdp.Options{})
	closedStack, err := sdp.New(device(t, rnic.Options{}), sdp.Options{})
	require.NoError(t, err)
	require.NoError(t, closedStack.Close())
	conn, _ := e.dial(t)
	closed, _ := e.dial(t)
	require.NoError(t, closed.Close())
	l, err := e.a.ListenPort(0, 1)
	require.NoError(t, err)
	defer l.Close()
	closedListener, err := e.a.ListenPort(0, 1)
	require.NoError(t, err)
	require.NoError(t, closedListener.Close())
	p, err := e.a.ListenPacketPort(0)
	require.NoError(t, err)
	defer p.Close()
	closedPacket, err := e.a.ListenPacketPort(0)
	require.NoError(t, err)
	require.NoError(t, closedPacket.Close())

	live := func(v any) misuse.Receiver {
		return misuse.Receiver{Name: "live", Usable: true, Make: func() any { return v }}
	}
	waiting := func(v interface{ SetDeadline(time.Time) error }) misuse.Receiver {
		return misuse.Receiver{Name: "live", Usable: true, Make: func() any {
			_ = v.SetDeadline(time.Unix(1, 0)) // waits have a deadline
			return v
		}}
	}
	dead := func(name string, v any) misuse.Receiver {
		return misuse.Receiver{Name: name, Make: func() any { return v }}
	}
	s := &misuse.Surface{
		Dir:   ".",
		Funcs: map[string]any{"New": sdp.New},
		Types: map[string][]misuse.Receiver{
			"Addr":         {live(sdp.Addr{})},
			"Conn":         {waiting(conn), dead("closed", closed)},
			"Dialer":       {live(&sdp.Dialer{Stack: e.a}), dead("closed", &sdp.Dialer{Stack: closedStack})},
			"ListenConfig": {live(&sdp.ListenConfig{Stack: e.a, Backlog: -1}), dead("closed", &sdp.ListenConfig{Stack: closedStack})},
			"FlowControl":  {live(new(sdp.FlowControl))},
			"PacketStats":  {live(sdp.PacketStats{})},
			"Stats":        {live(sdp.Stats{})},
			"Listener":     {waiting(l), dead("closed", closedListener)},
			"Options":      {live(sdp.Options{})},
			"PacketConn":   {waiting(p), dead("closed", closedPacket)},
			"Stack":        {live(e.a), dead("closed", closedStack)},
		},
		Values: []any{netip.AddrPort{}, netip.MustParseAddrPort("0.0.0.0:0"), make([]byte, 1<<20), sdp.Options{Buffers: -1}, sdp.Dialer{}, "", "udp", ":x", "nowhere:", time.Unix(1, 0)},
		Except: map[string]string{
			"Conn.ReadFrom on live":    "panics as io.Copy of a nil reader does",
			"Conn.ReadFrom on closed":  "panics as io.Copy of a nil reader does",
			"Conn.Close on live":       "ends the connection of this test",
			"Listener.Close on live":   "ends the listener of this test",
			"PacketConn.Close on live": "ends the connection of this test",
			"Stack.Close on live":      "ends the stack of this test",
			"Stack.Shutdown on live":   "ends the stack of this test",
		},
		Quiet: map[string]string{
			"Stack.Close":              "may be called again",
			"Stack.Shutdown on closed": "may be called again", "FlowControl.MarshalText on zero": "the zero value is NIC",
		},
		Errors: []error{net.ErrClosed, syscall.EINVAL, os.ErrDeadlineExceeded, verbs.ErrInvalid},
	}
	s.Check(t)
}

// TestOptions checks that invalid options are refused and named.
func TestOptions(t *testing.T) {
	dev := device(t, rnic.Options{})
	for cause, o := range map[string]sdp.Options{
		"Options.FlowControl: FlowControl(9) is none of nic, rdma and credit": {FlowControl: 9},
		"Options.Buffers: -1 out of range [1, 16384]":                         {Buffers: -1},
		"Options.BufferBytes: 7 out of range [64, 16777216]":                  {BufferBytes: 7},
		"Options.Window: -3 out of range [1, 1048576], half of all buffers":   {Window: -3},
		"Options.OfferTime: -1s is negative":                                  {OfferTime: -time.Second},
		"Options.MaxBufferBytes: -1 is negative":                              {MaxBufferBytes: -1},
		"Options.Linger: -1ns is negative":                                    {Linger: -1},
		"Options.Queue: 2 out of range [4, 32768]":                            {Queue: 2},
		"Options.Receives: 32769 out of range [8, 32768]":                     {Receives: 1<<15 + 1},
	} {
		_, err := sdp.New(dev, o)
		require.ErrorContains(t, err, cause)
		require.ErrorIs(t, err, verbs.ErrInvalid)
	}

	m, err := cm.New(device(t, rnic.Options{}), cm.Options{})
	require.NoError(t, err)
	defer m.Close()
	_, err = sdp.New(dev, sdp.Options{Manager: m})
	require.ErrorIs(t, err, verbs.ErrInvalid)
	require.ErrorContains(t, err, "sdp: verbs: invalid argument: Options.Manager: manager of the device at "+m.Addr().String())
}
