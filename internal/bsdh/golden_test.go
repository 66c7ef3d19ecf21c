package bsdh_test

import (
	"encoding/hex"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/bsdh"
)

// layouts reads testdata/layouts.txt, whose head has its sources, and returns the messages by name.
// A name is a line of its own; the next lines have bytes in groups, then their meaning.
func layouts(t testing.TB) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile("testdata/layouts.txt")
	require.NoError(t, err)
	all := map[string][]byte{}
	name, blank := "", true
	for line := range strings.Lines(string(text)) {
		switch line = strings.TrimSpace(line); {
		case line == "" || line[0] == '#':
			blank = true
		case blank:
			name, blank = line, false
			require.NotContains(t, all, name)
		default:
			for group := range strings.FieldsSeq(line) {
				b, err := hex.DecodeString(group)
				if err != nil { // the meaning follows
					break
				}
				all[name] = append(all[name], b...)
			}
		}
	}
	return all
}

// extended is an extended header.
type extended interface{ Append([]byte) []byte }

// plain are the messages of layouts.txt as values, except Hello and HelloAck.
var plain = []struct {
	name     string
	mid      bsdh.MID
	flags    bsdh.Flags
	extended extended // nil for none
	payload  string
}{
	{"DisConn", bsdh.MIDDisConn, 0, nil, ""},
	{"AbortConn", bsdh.MIDAbortConn, 0, nil, ""},
	{"SendSm", bsdh.MIDSendSm, 0, nil, ""},
	{"RdmaWrCompl", bsdh.MIDRdmaWrCompl, 0, bsdh.RdmaCompl{Len: 0x12345}, ""},
	{"RdmaRdCompl", bsdh.MIDRdmaRdCompl, bsdh.RequestPipe, bsdh.RdmaCompl{Len: 0x12345}, ""},
	{"ModeChange to pipelined, receive half", bsdh.MIDModeChange, 0, bsdh.ModeChange{Mode: bsdh.Pipelined}, ""},
	{"ModeChange to combined, send half", bsdh.MIDModeChange, 0, bsdh.ModeChange{Mode: bsdh.Combined, SendHalf: true}, ""},
	{"SrcAvailCancel", bsdh.MIDSrcAvailCancel, 0, nil, ""},
	{"SinkAvailCancel", bsdh.MIDSinkAvailCancel, 0, nil, ""},
	{"SinkCancelAck", bsdh.MIDSinkCancelAck, 0, nil, ""},
	{"ChRcvBuf", bsdh.MIDChRcvBuf, 0, bsdh.ChRcvBuf{Size: 65552}, ""},
	{"ChRcvBufAck", bsdh.MIDChRcvBufAck, 0, bsdh.ChRcvBuf{Size: 32784}, ""},
	{"SuspComm", bsdh.MIDSuspComm, 0, bsdh.SuspComm{ServiceID: bsdh.ServiceID(7174)}, ""},
	{"SuspCommAck", bsdh.MIDSuspCommAck, 0, nil, ""},
	{"SinkAvail", bsdh.MIDSinkAvail, 0, bsdh.SinkAvail{Len: 1 << 20, RKey: 0x11223344, Addr: 0x7f123456789a, NonDiscards: 9}, ""},
	{"SrcAvail", bsdh.MIDSrcAvail, bsdh.OOBPending, bsdh.SrcAvail{Len: 1 << 20, RKey: 0x11223344, Addr: 0x7f123456789a}, "hello"},
	{"Data", bsdh.MIDData, bsdh.OOBPresent, nil, "hello"},
	{"RingUpdate", bsdh.MIDRingUpdate, 0, bsdh.RingUpdate{Freed: 0x123456789}, ""},
	{"RingChange", bsdh.MIDRingChange, 0, bsdh.RingChange{Ring: 512 << 10, RKey: 0x55667788, Addr: 0x7f1234560000}, ""},
	{"RingSwitched", bsdh.MIDRingSwitched, 0, nil, ""},
}

// parseExtended parses the extended header of any message, nil if it has none.
func parseExtended(m bsdh.MID, b []byte) (any, error) {
	switch m {
	case bsdh.MIDRdmaWrCompl, bsdh.MIDRdmaRdCompl:
		return bsdh.ParseExtended[bsdh.RdmaCompl](b)
	case bsdh.MIDModeChange:
		return bsdh.ParseExtended[bsdh.ModeChange](b)
	case bsdh.MIDChRcvBuf, bsdh.MIDChRcvBufAck:
		return bsdh.ParseExtended[bsdh.ChRcvBuf](b)
	case bsdh.MIDSuspComm:
		return bsdh.ParseExtended[bsdh.SuspComm](b)
	case bsdh.MIDSinkAvail:
		return bsdh.ParseExtended[bsdh.SinkAvail](b)
	case bsdh.MIDSrcAvail:
		return bsdh.ParseExtended[bsdh.SrcAvail](b)
	case bsdh.MIDRingUpdate:
		return bsdh.ParseExtended[bsdh.RingUpdate](b)
	case bsdh.MIDRingChange:
		return bsdh.ParseExtended[bsdh.RingChange](b)
	}
	return nil, nil
}

// TestLayouts checks that every message is encoded to the bytes of layouts.txt, and decoded from
// them.
func TestLayouts(t *testing.T) {
	all := layouts(t)
	for _, m := range plain {
		t.Run(m.name, func(t *testing.T) {
			want := all[m.name]
			require.NotEmpty(t, want)
			h := bsdh.Header{
				MID: m.mid, Flags: m.flags, Bufs: 32, Len: uint32(bsdh.HeaderBytes + m.mid.Extended() + len(m.payload)), Seq: 7, Ack: 5,
			}
			b := h.Append(nil)
			if m.extended != nil {
				b = m.extended.Append(b)
			}
			require.Len(t, b, bsdh.HeaderBytes+m.mid.Extended())
			b = append(b, m.payload...)
			require.Equal(t, want, b)

			got, err := bsdh.ParseHeader(append(want, "what lies behind"...))
			require.NoError(t, err)
			require.Equal(t, h, got)
			require.Equal(t, m.payload, string(got.Payload(want)))
			ext, err := parseExtended(m.mid, want[bsdh.HeaderBytes:])
			require.NoError(t, err)
			if m.extended == nil {
				require.Nil(t, ext)
			} else {
				require.Equal(t, m.extended, ext)
			}
		})
	}
	h, err := bsdh.ParseHeader(all["Data without payload"])
	require.NoError(t, err)
	require.Equal(t, bsdh.Header{MID: bsdh.MIDData, Bufs: 32, Len: 16, Seq: 1<<32 - 2, Ack: 1<<32 - 1}, h)
	require.Empty(t, h.Payload(all["Data without payload"]))
	require.Len(t, all, len(plain)+6)
}

var ring = bsdh.Extension{FlowControl: bsdh.FlowControlNIC, Buffers: 8, Ring: 256 << 10, Window: 8 << 10, RKey: 0x55667788, Addr: 0x7f1234560000}

func TestLayoutsOfHello(t *testing.T) {
	all := layouts(t)
	ofed := bsdh.Hello{
		Version: bsdh.Version, MaxAdverts: 1, DesRemRcvSz: 32784, LocalRcvSz: 4112, Bufs: 64,
		LocalPort: 50123, Src: netip.MustParseAddr("198.51.100.2"), Dst: netip.MustParseAddr("198.51.100.1"),
	}
	extended := ofed
	extended.Extension = ring
	for name, h := range map[string]bsdh.Hello{
		"Hello": ofed, "Hello with an extension": extended,
		"Hello of IPv6": {
			Version: 0x11, MaxAdverts: 255, Capabilities: bsdh.CapInvalidate | bsdh.CapExtendedMaxAdverts, ExtMaxAdverts: 1024,
			DesRemRcvSz: 8192, LocalRcvSz: 4096, Bufs: 8,
			LocalPort: 7174, Src: netip.MustParseAddr("2001:db8::2"), Dst: netip.MustParseAddr("2001:db8::1"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Len(t, all[name], bsdh.HelloBytes)
			require.Equal(t, all[name], h.Append(nil))
			got, err := bsdh.ParseHello(all[name])
			require.NoError(t, err)
			require.Equal(t, h, got)
			base, err := bsdh.ParseHeader(all[name])
			require.NoError(t, err)
			require.Equal(t, bsdh.Header{MID: bsdh.MIDHello, Bufs: h.Bufs, Len: bsdh.HelloBytes}, base)
		})
	}
}

func TestLayoutsOfHelloAck(t *testing.T) {
	all := layouts(t)
	ofed := bsdh.HelloAck{Version: bsdh.Version, MaxAdverts: 1, ActRcvSz: 32784, Bufs: 64}
	extended := ofed
	extended.Extension = ring
	extended.Extension.FlowControl = bsdh.FlowControlRDMA
	for name, h := range map[string]bsdh.HelloAck{"HelloAck": ofed, "HelloAck with an extension": extended} {
		t.Run(name, func(t *testing.T) {
			require.Len(t, all[name], bsdh.HelloAckBytes)
			require.Equal(t, all[name], h.Append(nil))
			got, err := bsdh.ParseHelloAck(all[name])
			require.NoError(t, err)
			require.Equal(t, h, got)
			base, err := bsdh.ParseHeader(all[name])
			require.NoError(t, err)
			require.Equal(t, bsdh.Header{MID: bsdh.MIDHelloAck, Bufs: h.Bufs, Len: bsdh.HelloAckBytes}, base)
		})
	}
}
