package bsdh_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/wire/mad"
)

// withChange returns a copy of b with a change.
func withChange(b []byte, change func(b []byte)) []byte {
	b = bytes.Clone(b)
	change(b)
	return b
}

func setLen(n uint32) func(b []byte) {
	return func(b []byte) { binary.BigEndian.PutUint32(b[4:], n) }
}

func set(at int, v byte) func(b []byte) { return func(b []byte) { b[at] = v } }

// TestInvalidLengths checks that an invalid length is refused, with an error that has the numbers.
func TestInvalidLengths(t *testing.T) {
	all := layouts(t)
	for _, c := range []struct {
		b    []byte
		want string
	}{
		{nil, "0 bytes arrived, the base header alone takes 16"},
		{all["Data"][:15], "15 bytes arrived, the base header alone takes 16"},
		{withChange(all["Data"], setLen(15)), "Data of length 15: headers alone take 16 bytes"},
		{withChange(all["Data"], setLen(0)), "Data of length 0: headers alone take 16 bytes"},
		{withChange(all["Data"], setLen(22)), "Data of length 22: 21 bytes received"},
		{withChange(all["Data"], setLen(1<<32-1)), "Data of length 4294967295: 21 bytes received"},
		{withChange(all["SrcAvail"], setLen(31)), "SrcAvail of length 31: headers alone take 32 bytes"},
		{all["SrcAvail"][:36], "SrcAvail of length 37: 36 bytes received"},
		{withChange(all["DisConn"], set(0, 0x3F))[:10], "10 bytes arrived"},
		{withChange(all["Hello"], setLen(91)), "Hello of length 91: headers alone take 92 bytes"},
	} {
		_, err := bsdh.ParseHeader(c.b)
		require.ErrorIs(t, err, bsdh.ErrMalformed)
		require.ErrorContains(t, err, c.want)
	}
	// Reserved numbers are accepted: the socket refuses them.
	h, err := bsdh.ParseHeader(withChange(all["DisConn"], set(0, 0x3F)))
	require.NoError(t, err)
	require.False(t, h.MID.Known())
	// A header of other bytes has no payload there.
	h, err = bsdh.ParseHeader(all["Data"])
	require.NoError(t, err)
	require.Empty(t, h.Payload(all["Data"][:20]))
	require.Empty(t, bsdh.Header{MID: bsdh.MIDSrcAvail, Len: 20}.Payload(all["SrcAvail"]))
}

func TestBadHello(t *testing.T) {
	all := layouts(t)
	for _, c := range []struct {
		change func(b []byte)
		want   string
	}{
		{set(0, 0xFF), "private data begins with Data instead of Hello"},
		{setLen(63), "Hello of length 63: want 64 to 92"},
		{setLen(93), "Hello of length 93: want 64 to 92"},
		{set(17, 0x00), "Hello of IP version 0, want 4 or 6"},
		{set(17, 0x04), "Hello of IP version 0"}, // nibbles exchanged
		{set(17, 0x50), "Hello of IP version 5"},
		{set(19, 0), "Hello with MaxAdverts 0: want at least 1"},
	} {
		h, err := bsdh.ParseHello(withChange(all["Hello"], c.change))
		require.ErrorIs(t, err, bsdh.ErrMalformed)
		require.ErrorContains(t, err, c.want)
		require.Zero(t, h)
	}
	_, err := bsdh.ParseHello(all["Hello"][:91])
	require.ErrorContains(t, err, "91 bytes of private data, Hello takes 92")
	_, err = bsdh.ParseHello(nil)
	require.ErrorContains(t, err, "0 bytes of private data")

	for _, c := range []struct {
		change func(b []byte)
		want   string
	}{
		{set(0, 0), "private data begins with Hello instead of HelloAck"},
		{setLen(23), "HelloAck of length 23: want 24 to 196"},
		{setLen(197), "HelloAck of length 197: want 24 to 196"},
		{set(19, 0), "HelloAck with MaxAdverts 0"},
	} {
		h, err := bsdh.ParseHelloAck(withChange(all["HelloAck"], c.change))
		require.ErrorIs(t, err, bsdh.ErrMalformed)
		require.ErrorContains(t, err, c.want)
		require.Zero(t, h)
	}
	_, err = bsdh.ParseHelloAck(all["HelloAck"][:195])
	require.ErrorContains(t, err, "195 bytes of private data, HelloAck takes 196")
}

// TestPadding checks that bytes after a Hello are ignored.
func TestPadding(t *testing.T) {
	all := layouts(t)
	want, err := bsdh.ParseHello(all["Hello"])
	require.NoError(t, err)
	got, err := bsdh.ParseHello(append(all["Hello"], make([]byte, 50)...))
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// TestEarlyOFED tests the Hello of OFED 1.5, whose length ends with its last field, at 64, and its
// HelloAck, at 24 (struct sdp_hh and sdp_hah without reserved bytes at the end).
func TestEarlyOFED(t *testing.T) {
	all := layouts(t)
	want, err := bsdh.ParseHello(all["Hello"])
	require.NoError(t, err)
	for _, name := range []string{"Hello", "Hello with an extension"} {
		got, err := bsdh.ParseHello(withChange(all[name], setLen(64)))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	ack, err := bsdh.ParseHelloAck(all["HelloAck"])
	require.NoError(t, err)
	for _, name := range []string{"HelloAck", "HelloAck with an extension"} {
		got, err := bsdh.ParseHelloAck(withChange(all[name], setLen(24)))
		require.NoError(t, err)
		require.Equal(t, ack, got)
	}
}

// TestExtensionAbsent checks that softrnic's extension is not found in messages of other
// implementations or unknown versions.
func TestExtensionAbsent(t *testing.T) {
	all := layouts(t)
	at := bsdh.HeaderBytes + 52
	for _, change := range []func(b []byte){
		set(at, 0),                         // flow control none
		set(at, 4),                         // an unknown flow control
		set(at+1, 0),                       // no version
		set(at+1, 1),                       // an earlier version, without buffers
		set(at+1, 3),                       // a later version
		func(b []byte) { clear(b[at:92]) }, // a plain peer
	} {
		h, err := bsdh.ParseHello(withChange(all["Hello with an extension"], change))
		require.NoError(t, err)
		require.Zero(t, h.Extension)
		require.False(t, h.Extension.Present())
		require.Equal(t, all["Hello"], h.Append(nil), "an absent one is written as zeros")
	}
	h, err := bsdh.ParseHello(all["Hello with an extension"])
	require.NoError(t, err)
	require.Equal(t, ring, h.Extension)
	require.True(t, h.Extension.Present())

	lost := bsdh.HelloAck{Version: bsdh.Version, MaxAdverts: 1, ActRcvSz: 32784, Bufs: 64, Extension: bsdh.Extension{Ring: 5, Addr: 6}}
	require.Equal(t, all["HelloAck"], lost.Append(nil), "with Credit there is none")
}

// TestAddressFamilies checks that addresses of different families make an IPv6 Hello, and that
// unset addresses do not panic.
func TestAddressFamilies(t *testing.T) {
	four, six := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	mapped := netip.AddrFrom16(four.As16())
	for _, c := range []struct{ src, dst, wantSrc, wantDst netip.Addr }{
		{four, four, four, four},
		{mapped, four, four, four},
		{six, four, six, four},
		{four, six, four, six},
		{six.WithZone("eth0"), six, six, six},
		{netip.Addr{}, netip.Addr{}, netip.IPv6Unspecified(), netip.IPv6Unspecified()},
	} {
		h, err := bsdh.ParseHello((&bsdh.Hello{MaxAdverts: 1, Src: c.src, Dst: c.dst}).Append(nil))
		require.NoError(t, err)
		require.Equal(t, []netip.Addr{c.wantSrc, c.wantDst}, []netip.Addr{h.Src, h.Dst})
	}
}

func TestShortExtendedHeaders(t *testing.T) {
	for _, m := range plain {
		for n := range m.mid.Extended() {
			_, err := parseExtended(m.mid, make([]byte, n))
			require.ErrorIs(t, err, bsdh.ErrMalformed)
			require.ErrorContains(t, err, m.mid.String())
		}
	}
	_, err := bsdh.ParseExtended[bsdh.SrcAvail](make([]byte, 15))
	require.ErrorContains(t, err, "the extended header of SrcAvail takes 16 bytes, 15 are there")
}

// TestModes compares the first byte of ModeChange with both drivers.
func TestModes(t *testing.T) {
	for b, want := range map[byte]string{
		0x00: "buffered, receive half", 0x10: "combined, receive half", 0x20: "pipelined, receive half",
		0x80: "buffered, send half", 0x90: "combined, send half", 0xA0: "pipelined, send half",
		0x2F: "pipelined, receive half", // the low bits are reserved
	} {
		c, err := bsdh.ParseExtended[bsdh.ModeChange]([]byte{b, 1, 2, 3})
		require.NoError(t, err)
		require.Equal(t, want, c.String())
		require.Equal(t, []byte{b & 0xF0, 0, 0, 0}, c.Append(nil))
	}
	for _, b := range []byte{0x30, 0x70, 0xB0, 0xF0} {
		_, err := bsdh.ParseExtended[bsdh.ModeChange]([]byte{b, 0, 0, 0})
		require.ErrorIs(t, err, bsdh.ErrMalformed)
	}
	_, err := bsdh.ParseExtended[bsdh.ModeChange]([]byte{0x50, 0, 0, 0})
	require.ErrorContains(t, err, "ModeChange to mode 5, the last is 2")
}

func TestServiceIDs(t *testing.T) {
	require.EqualValues(t, 0x10000+7174, bsdh.ServiceID(7174))
	for _, port := range []uint16{0, 1, 1 << 15, 1<<16 - 1} {
		id := bsdh.ServiceID(port)
		require.EqualValues(t, mad.ServiceIDOf(mad.PortSpaceSDP, port), id)
		got, ok := bsdh.Port(id)
		require.True(t, ok)
		require.Equal(t, port, got)
	}
	for _, id := range []uint64{
		0, 7174, 0x20000, 0x30000, 1<<63 | 0x10001, uint64(mad.ServiceIDOf(mad.PortSpaceTCP, 80)), uint64(mad.ServiceIDOf(mad.PortSpaceUDP, 80)),
	} {
		_, ok := bsdh.Port(id)
		require.False(t, ok, "%#x", id)
	}
}

func TestImm(t *testing.T) {
	require.Equal(t, bsdh.Imm(0x80000005), bsdh.MakeImm(5, true))
	require.Equal(t, bsdh.Imm(5), bsdh.MakeImm(5, false))
	for _, offset := range []uint32{0, 1, 1<<31 - 1} {
		for _, urgent := range []bool{false, true} {
			i := bsdh.MakeImm(offset, urgent)
			require.Equal(t, offset, i.Offset())
			require.Equal(t, urgent, i.Urgent())
		}
	}
	require.False(t, bsdh.MakeImm(bsdh.MaxRing, false).Urgent(), "an offset does not reach the flag")
}

func TestWords(t *testing.T) {
	var known, private, carrying []bsdh.MID
	for m := range 256 {
		m := bsdh.MID(m)
		if m.Known() {
			known = append(known, m)
			require.NotContains(t, m.String(), "MID")
		} else {
			require.Contains(t, m.String(), "MID 0x")
			require.Zero(t, m.Extended())
		}
		if m.Private() {
			private = append(private, m)
		}
		if m.MayCarry() {
			carrying = append(carrying, m)
		}
	}
	want := []bsdh.MID{bsdh.MIDHello, bsdh.MIDHelloAck}
	for _, m := range plain {
		want = append(want, m.mid)
	}
	slices.Sort(want)
	require.Equal(t, slices.Compact(want), known)
	require.Equal(t, []bsdh.MID{bsdh.MIDRingUpdate, bsdh.MIDRingChange, bsdh.MIDRingSwitched}, private)
	require.Equal(t, []bsdh.MID{bsdh.MIDSinkAvail, bsdh.MIDSrcAvail, bsdh.MIDData}, carrying)
	require.Equal(t, "MID 0x3f", bsdh.MID(0x3F).String())

	require.Equal(t, "none", bsdh.Flags(0).String())
	require.Equal(t, "OOB_PRES|OOB_PEND|REQ_PIPE", (bsdh.OOBPresent | bsdh.OOBPending | bsdh.RequestPipe).String())
	require.Equal(t, "REQ_PIPE|0xf0", bsdh.Flags(0xF4).String())
	require.Equal(t, "0x8", bsdh.Flags(8).String())
	require.Equal(t, "mode 7", bsdh.Mode(7).String())
	require.Equal(t, []string{"credit", "rdma", "nic", "flow control 9"},
		[]string{bsdh.FlowControlCredit.String(), bsdh.FlowControlRDMA.String(), bsdh.FlowControlNIC.String(), bsdh.FlowControl(9).String()})
}

func TestNothingIsAllocated(t *testing.T) {
	all := layouts(t)
	b := make([]byte, 0, 256)
	for name, f := range map[string]func(){
		"Hello":           func() { bsdh.ParseHello(all["Hello with an extension"]) },
		"HelloAck":        func() { bsdh.ParseHelloAck(all["HelloAck with an extension"]) },
		"header":          func() { bsdh.ParseHeader(all["SrcAvail"]) },
		"SrcAvail":        func() { bsdh.ParseExtended[bsdh.SrcAvail](all["SrcAvail"][16:]) },
		"SinkAvail":       func() { bsdh.ParseExtended[bsdh.SinkAvail](all["SinkAvail"][16:]) },
		"RdmaCompl":       func() { bsdh.ParseExtended[bsdh.RdmaCompl](all["RdmaRdCompl"][16:]) },
		"ModeChange":      func() { bsdh.ParseExtended[bsdh.ModeChange](all["ModeChange to pipelined, receive half"][16:]) },
		"ChRcvBuf":        func() { bsdh.ParseExtended[bsdh.ChRcvBuf](all["ChRcvBuf"][16:]) },
		"SuspComm":        func() { bsdh.ParseExtended[bsdh.SuspComm](all["SuspComm"][16:]) },
		"RingUpdate":      func() { bsdh.ParseExtended[bsdh.RingUpdate](all["RingUpdate"][16:]) },
		"RingChange":      func() { bsdh.ParseExtended[bsdh.RingChange](all["RingChange"][16:]) },
		"written message": func() { b = bsdh.SrcAvail{}.Append(bsdh.Header{}.Append(b[:0])) },
		"written Hello":   func() { b = (&bsdh.Hello{Extension: ring}).Append(b[:0]) },
		"written plain":   func() { b = (&bsdh.Hello{}).Append(b[:0]) },
		"written Ack":     func() { b = (&bsdh.HelloAck{}).Append(b[:0]) },
	} {
		require.Zero(t, testing.AllocsPerRun(100, f), name)
	}
}
