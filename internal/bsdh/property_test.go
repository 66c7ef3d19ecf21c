package bsdh_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/internal/bsdh"
)

// allValues returns a generator of all values of a type.
func allValues[T any]() *rapid.Generator[T] { return rapid.Make[T]() }

func drawExtension(t *rapid.T) bsdh.Extension {
	e := allValues[bsdh.Extension]().Draw(t, "extension")
	e.FlowControl = bsdh.FlowControl(rapid.IntRange(0, 2).Draw(t, "design"))
	if !e.Present() {
		return bsdh.Extension{}
	}
	return e
}

// drawAddrs draws two addresses of one family.
func drawAddrs(t *rapid.T) (src, dst netip.Addr) {
	n := 4
	if rapid.Bool().Draw(t, "IPv6") {
		n = 16
	}
	g := rapid.SliceOfN(rapid.Byte(), n, n)
	src, _ = netip.AddrFromSlice(g.Draw(t, "src"))
	dst, _ = netip.AddrFromSlice(g.Draw(t, "dst"))
	return src.Unmap(), dst.Unmap()
}

// TestHelloRoundTrip checks that each field of Hello and HelloAck survives encoding and decoding at
// its full width.
func TestHelloRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := bsdh.Hello{
			Version: rapid.Uint8().Draw(t, "version"), MaxAdverts: rapid.Uint8Min(1).Draw(t, "adverts"),
			Capabilities: bsdh.Capabilities(rapid.Uint8Max(15).Draw(t, "caps")), ExtMaxAdverts: rapid.Uint16().Draw(t, "ext"),
			DesRemRcvSz: rapid.Uint32().Draw(t, "desired"), LocalRcvSz: rapid.Uint32().Draw(t, "local"), Bufs: rapid.Uint16().Draw(t, "bufs"),
			LocalPort: rapid.Uint16().Draw(t, "port"), Extension: drawExtension(t),
		}
		h.Src, h.Dst = drawAddrs(t)
		before := rapid.SliceOf(rapid.Byte()).Draw(t, "before")
		b := h.Append(before)
		require.Equal(t, before, b[:len(before)])
		require.Len(t, b[len(before):], bsdh.HelloBytes)
		got, err := bsdh.ParseHello(b[len(before):])
		require.NoError(t, err)
		require.Equal(t, h, got)

		a := bsdh.HelloAck{Version: h.Version, MaxAdverts: h.MaxAdverts, ActRcvSz: h.LocalRcvSz, Bufs: h.Bufs, Extension: h.Extension}
		b = a.Append(before)
		require.Len(t, b[len(before):], bsdh.HelloAckBytes)
		gotAck, err := bsdh.ParseHelloAck(b[len(before):])
		require.NoError(t, err)
		require.Equal(t, a, gotAck)
	})
}

// drawExtended draws an extended header for a kind of message, nil if it has none.
func drawExtended(t *rapid.T, m bsdh.MID) extended {
	switch m {
	case bsdh.MIDRdmaWrCompl, bsdh.MIDRdmaRdCompl:
		return allValues[bsdh.RdmaCompl]().Draw(t, "completion")
	case bsdh.MIDModeChange:
		return bsdh.ModeChange{Mode: bsdh.Mode(rapid.IntRange(0, 2).Draw(t, "mode")), SendHalf: rapid.Bool().Draw(t, "half")}
	case bsdh.MIDChRcvBuf, bsdh.MIDChRcvBufAck:
		return allValues[bsdh.ChRcvBuf]().Draw(t, "size")
	case bsdh.MIDSuspComm:
		return allValues[bsdh.SuspComm]().Draw(t, "service")
	case bsdh.MIDSinkAvail:
		return allValues[bsdh.SinkAvail]().Draw(t, "sink")
	case bsdh.MIDSrcAvail:
		return allValues[bsdh.SrcAvail]().Draw(t, "source")
	case bsdh.MIDRingUpdate:
		return allValues[bsdh.RingUpdate]().Draw(t, "update")
	case bsdh.MIDRingChange:
		return allValues[bsdh.RingChange]().Draw(t, "change")
	}
	return nil
}

// TestMessagesRoundTrip checks that all other messages survive encoding and decoding, and that
// shorter buffers are refused.
func TestMessagesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom(plain).Draw(t, "message").mid
		ext := drawExtended(t, m)
		var payload []byte
		if m.MayCarry() {
			payload = rapid.SliceOf(rapid.Byte()).Draw(t, "payload")
		}
		h := bsdh.Header{
			MID: m, Flags: bsdh.Flags(rapid.Uint8().Draw(t, "flags")), Bufs: rapid.Uint16().Draw(t, "bufs"),
			Len: uint32(bsdh.HeaderBytes + m.Extended() + len(payload)), Seq: rapid.Uint32().Draw(t, "seq"), Ack: rapid.Uint32().Draw(t, "ack"),
		}
		b := h.Append(nil)
		if ext != nil {
			b = ext.Append(b)
		}
		b = append(b, payload...)
		require.Len(t, b, int(h.Len))

		got, err := bsdh.ParseHeader(b)
		require.NoError(t, err)
		require.Equal(t, h, got)
		require.Equal(t, string(payload), string(got.Payload(b)))
		gotExt, err := parseExtended(m, b[bsdh.HeaderBytes:])
		require.NoError(t, err)
		if ext != nil {
			require.Equal(t, ext, gotExt)
		}
		_, err = bsdh.ParseHeader(b[:rapid.IntRange(0, len(b)-1).Draw(t, "cut")])
		require.ErrorIs(t, err, bsdh.ErrMalformed)
	})
}
