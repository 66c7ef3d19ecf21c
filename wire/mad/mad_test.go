package mad_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire/mad"
)

func TestInvalidMessages(t *testing.T) {
	good := func() []byte {
		var b [mad.Size]byte
		mad.Put(&b, mad.Header{Attr: mad.AttrRTU}, &mad.RTU{})
		return b[:]
	}
	for _, c := range []struct {
		drop  mad.Drop
		spoil func(b []byte) []byte
	}{
		{mad.DropBadSize, func(b []byte) []byte { return nil }},
		{mad.DropBadSize, func(b []byte) []byte { return b[:255] }},
		{mad.DropBadSize, func(b []byte) []byte { return append(b, 0) }},
		{mad.DropBadVersion, func(b []byte) []byte { b[0] = 2; return b }},
		{mad.DropOtherClass, func(b []byte) []byte { b[1] = 3; return b }},
		{mad.DropBadClassVersion, func(b []byte) []byte { b[2] = 1; return b }},
		{mad.DropBadMethod, func(b []byte) []byte { b[3] = 0x81; return b }},
		{mad.DropUnknownAttr, func(b []byte) []byte { b[17] = 0x0f; return b }},
		{mad.DropUnknownAttr, func(b []byte) []byte { b[17] = 0x1b; return b }},
		{mad.DropNone, func(b []byte) []byte { return b }},
	} {
		_, _, drop := mad.Parse(c.spoil(good()))
		require.Equal(t, c.drop, drop)
	}
}

func TestCMAHeader(t *testing.T) {
	for _, h := range []mad.CMAHeader{
		{Src: netip.MustParseAddrPort("192.0.2.1:7"), Dst: netip.MustParseAddr("192.0.2.2")},
		{Src: netip.MustParseAddrPort("[2001:db8::1]:65535"), Dst: netip.MustParseAddr("2001:db8::2")},
	} {
		var b [mad.CMAHeaderLen]byte
		h.Put(b[:])
		got, ok := mad.ParseCMAHeader(b[:])
		require.True(t, ok)
		require.Equal(t, h, got)
		if h.Dst.Is4() {
			require.EqualValues(t, 0x40, b[1])
			require.Equal(t, make([]byte, 12), b[4:16], "not the mapped form")
		} else {
			require.EqualValues(t, 0x60, b[1])
		}
		_, ok = mad.ParseCMAHeader(b[:mad.CMAHeaderLen-1])
		require.False(t, ok)
		b[1] = 0x50
		_, ok = mad.ParseCMAHeader(b[:])
		require.False(t, ok)
		b[0], b[1] = 1, 0x40
		_, ok = mad.ParseCMAHeader(b[:])
		require.False(t, ok)
	}
}

func TestServiceIDs(t *testing.T) {
	id := mad.ServiceIDOf(mad.PortSpaceTCP, 18515)
	require.EqualValues(t, 0x01064853, id)
	s, port, ok := id.Split()
	require.True(t, ok)
	require.Equal(t, mad.PortSpaceTCP, s)
	require.EqualValues(t, 18515, port)
	_, _, ok = (id | 1<<40).Split()
	require.False(t, ok)
	require.Equal(t, "service 0x1000000000000863", mad.ServiceID(0x1000000000000863).String())
	for s, want := range map[mad.PortSpace]bool{
		mad.PortSpaceTCP: true, mad.PortSpaceUDP: true, mad.PortSpaceIPoIB: true, mad.PortSpaceIB: true, mad.PortSpaceSDP: false,
	} {
		require.Equal(t, want, s.HasHeader(), "%v", s)
		require.NotContains(t, s.String(), "0x")
	}
	require.Equal(t, "port space 0x0007", mad.PortSpace(7).String())
}

func TestTimeouts(t *testing.T) {
	require.EqualValues(t, 4096, mad.TimeoutNanos(0))
	require.Equal(t, 4294967296*time.Nanosecond, time.Duration(mad.TimeoutNanos(20)))
	for code := range uint8(32) {
		require.Equal(t, code, mad.TimeoutCode(mad.TimeoutNanos(code)))
	}
	require.EqualValues(t, 31, mad.TimeoutCode(1<<62))
}

func TestWords(t *testing.T) {
	for r := mad.RejNoQP; r <= mad.RejVendorOption; r++ {
		require.NotContains(t, r.String(), "reason")
		require.NotEqual(t, mad.Reason(0).Description(), r.Description())
	}
	require.Equal(t, "reason 0", mad.Reason(0).String())
	require.Equal(t, "reason 999", mad.Reason(999).String())
	for s := mad.SIDRSuccess; s <= mad.SIDRUnsupportedVersion; s++ {
		require.NotContains(t, s.String(), "status")
		require.NotEqual(t, mad.SIDRStatus(77).Description(), s.Description())
	}
	require.Equal(t, "SIDR status 77", mad.SIDRStatus(77).String())
	for a := mad.AttrREQ; a <= mad.AttrAPR; a++ {
		require.NotContains(t, a.String(), "attribute")
	}
	require.Equal(t, "attribute 0x1b", (mad.AttrAPR + 1).String())
	for d := mad.DropNone; d < mad.NumDrops; d++ {
		require.NotContains(t, d.String(), "drop_")
	}
	require.Equal(t, "drop_99", mad.Drop(99).String())
}

// TestAllocations checks that Parse allocates the message only.
func TestAllocations(t *testing.T) {
	var b [mad.Size]byte
	for attr := mad.AttrREQ; attr <= mad.AttrAPR; attr++ {
		mad.Put(&b, mad.Header{Attr: attr}, &mad.REQ{PrivateData: make([]byte, mad.REQPrivateLen)})
		require.EqualValues(t, 1, testing.AllocsPerRun(100, func() {
			_, m, _ := mad.Parse(b[:])
			if q, ok := m.(*mad.REQ); ok {
				mad.ParseCMAHeader(q.PrivateData)
			}
		}), attr)
	}
}
