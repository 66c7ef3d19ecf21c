package capture

import (
	"fmt"
	"maps"
	"net/netip"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/wire"
	"github.com/softrnic/softrnic/wire/mad"
)

// sdpQPA and sdpQPB are the two queue pairs of the connection.
const sdpQPA, sdpQPB = 0x414243, 0x515253

// sdpShown is the length that the dissector of Wireshark 4.0 assumes for every extended header, and
// sdpShownData the least payload of Data. It reports a shorter packet as malformed.
const sdpShown, sdpShownData = 48, 1

// sdpMessages are a message of each kind, with the vendor-specific ones at the end.
func sdpMessages() (all [][]byte) {
	for i, m := range []struct {
		mid      bsdh.MID
		flags    bsdh.Flags
		extended interface{ Append([]byte) []byte }
		payload  string
	}{
		{bsdh.MIDData, bsdh.OOBPresent | bsdh.OOBPending, nil, "hello"},
		{bsdh.MIDData, 0, nil, ""},
		{bsdh.MIDSrcAvail, 0, bsdh.SrcAvail{Len: 1 << 20, RKey: 7, Addr: 1 << 40}, "the beginning of what is advertised"},
		{bsdh.MIDRdmaRdCompl, bsdh.RequestPipe, bsdh.RdmaCompl{Len: 1 << 19}, ""},
		{bsdh.MIDModeChange, 0, bsdh.ModeChange{Mode: bsdh.Pipelined}, ""},
		{bsdh.MIDSinkAvail, 0, bsdh.SinkAvail{Len: 1 << 20, RKey: 8, Addr: 1 << 41, NonDiscards: 3}, ""},
		{bsdh.MIDRdmaWrCompl, 0, bsdh.RdmaCompl{Len: 1 << 18}, ""},
		{bsdh.MIDSrcAvailCancel, 0, nil, ""},
		{bsdh.MIDSendSm, 0, nil, ""},
		{bsdh.MIDSinkAvailCancel, 0, nil, ""},
		{bsdh.MIDSinkCancelAck, 0, nil, ""},
		{bsdh.MIDChRcvBuf, 0, bsdh.ChRcvBuf{Size: 65552}, ""},
		{bsdh.MIDChRcvBufAck, 0, bsdh.ChRcvBuf{Size: 32784}, ""},
		{bsdh.MIDSuspComm, 0, bsdh.SuspComm{ServiceID: bsdh.ServiceID(7174)}, ""},
		{bsdh.MIDSuspCommAck, 0, nil, ""},
		{bsdh.MIDDisConn, 0, nil, ""},
		{bsdh.MIDAbortConn, 0, nil, ""},
		{bsdh.MIDRingUpdate, 0, bsdh.RingUpdate{Freed: 1 << 33}, ""},
		{bsdh.MIDRingChange, 0, bsdh.RingChange{Ring: 1 << 19, RKey: 10, Addr: 1 << 42}, ""},
		{bsdh.MIDRingSwitched, 0, nil, ""},
	} {
		h := bsdh.Header{
			MID: m.mid, Flags: m.flags, Bufs: uint16(64 - i), Seq: uint32(i + 1), Ack: uint32(i + 0x100),
			Len: uint32(bsdh.HeaderBytes + m.mid.Extended() + len(m.payload)),
		}
		b := h.Append(nil)
		if m.extended != nil {
			b = m.extended.Append(b)
		}
		all = append(all, append(b, m.payload...))
	}
	return all
}

// sdpGreetings are REQ and REP of a connection, which carry Hello and HelloAck. Both carry an
// extension, which must not confuse the dissector.
func sdpGreetings(t *testing.T, from, to netip.Addr) []cmMessage {
	ring := bsdh.Extension{FlowControl: bsdh.FlowControlNIC, Ring: 1 << 18, Window: 1 << 13, RKey: 9, Addr: 1 << 42}
	hello := bsdh.Hello{
		Version: bsdh.Version, MaxAdverts: 3, Capabilities: bsdh.CapExtendedMaxAdverts, ExtMaxAdverts: 0x1234, DesRemRcvSz: 32784, LocalRcvSz: 4112,
		Bufs: 64, LocalPort: 50123, Src: from, Dst: to, Extension: ring,
	}
	ack := bsdh.HelloAck{Version: bsdh.Version, MaxAdverts: 3, ActRcvSz: 32784, Bufs: 63, Extension: ring}
	asks, accepts := hello.Append(nil), ack.Append(nil)
	fields := sdpBase(t, asks)
	maps.Copy(fields, map[string]string{
		"hh.majv": "0x02", "hh.minv": "0x02", "hh.ipv": map[bool]string{true: "0x04", false: "0x06"}[from.Is4()],
		"hh.cap": "0x02", "hh.cap_invalidate": "0x00", "hh.cap_extmaxadverts": "0x01", "hh.maxadverts": "0x03",
		"hh.desremrcvsz": "32784", "hh.localrcvsz": "4112", "hh.localport": "50123",
		"hh.src_ip": sdpShownAddr(from), "hh.dst_ip": sdpShownAddr(to), "hh.extmaxadverts": "0x1234",
	})
	return []cmMessage{
		{mad.AttrREQ, &mad.REQ{
			LocalID: 1, ServiceID: mad.ServiceID(bsdh.ServiceID(7174)), QPN: sdpQPA, MTU: 3, PKey: wire.DefaultPKey,
			Primary: mad.Path{LocalGID: from.As16(), RemoteGID: to.As16()}, PrivateData: asks,
		}, fields},
		{mad.AttrREP, &mad.REP{LocalID: 2, RemoteID: 1, QPN: sdpQPB, PrivateData: accepts}, sdpBase(t, accepts)},
	}
}

// sdpShownAddr returns an address as the dissector shows it: always as IPv6.
func sdpShownAddr(a netip.Addr) string {
	if a.Is6() {
		return a.String()
	}
	return "::" + a.String()
}

// sdpBase returns the base header of a message as the dissector shows it, without single flags,
// which it reads from the wrong bytes.
func sdpBase(t *testing.T, m []byte) map[string]string {
	h, err := bsdh.ParseHeader(m)
	require.NoError(t, err)
	return map[string]string{
		"bsdh.mid": fmt.Sprintf("0x%02x", uint8(h.MID)), "bsdh.flags": fmt.Sprintf("0x%02x", uint8(h.Flags)),
		"bsdh.bufs": fmt.Sprint(h.Bufs), "bsdh.len": fmt.Sprint(h.Len),
		"bsdh.mseq": fmt.Sprintf("0x%08x", h.Seq), "bsdh.mseqack": fmt.Sprintf("0x%08x", h.Ack),
	}
}

// laySDP appends a message to a batch, as a SEND. A short one is padded to the length that the
// dissector expects; the message contains its own length.
func laySDP(b *link.Batch, to *wire.Path, qpn uint32, psn wire.PSN, m []byte) {
	payload := len(m)
	switch mid := bsdh.MID(m[0]); {
	case mid == bsdh.MIDData:
		payload = max(payload, bsdh.HeaderBytes+sdpShownData)
	case mid.Extended() > 0:
		payload = max(payload, bsdh.HeaderBytes+sdpShown)
	}
	pad := wire.PadFor(payload)
	pkt := b.Next(to, wire.BTHLen+payload+pad+wire.ICRCLen)
	clear(pkt)
	h := wire.BTH{Opcode: wire.RCSendOnly, PKey: wire.DefaultPKey, DestQPN: qpn, PSN: psn, Pad: uint8(pad)}
	h.Put(pkt)
	copy(pkt[wire.BTHLen:], m)
}

// sendBatch sends a batch of the peer to the captured end, or the other way round.
func (w *wires) sendBatch(t *testing.T, back bool, lay func(b *link.Batch, to *wire.Path)) {
	from, to := link.Conn(w.tap), link.Conn(w.peer)
	if back {
		from, to = to, from
	}
	b := link.NewBatch(1 << 10)
	lay(b, &wire.Path{Dst: to.LocalAddr()})
	require.NoError(t, from.WriteBatch(b))
	w.network.AdvanceTo(w.network.Now() + 1000)
	n, err := to.ReadBatch(w.read)
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

// TestTsharkSDP has Wireshark's dissector read an SDP connection, which it recognizes by the
// service id of the REQ. It parses all fields of Hello, and the base header of the others.
func TestTsharkSDP(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed: the dissector's verdict on SDP is missing")
	}
	for _, ends := range [][2]netip.AddrPort{{addr4A, addr4B}, {addr6A, addr6B}} {
		path := filepath.Join(t.TempDir(), "sdp.pcapng")
		f, err := Create(path, nil)
		require.NoError(t, err)
		w := connect(t, ends[0], ends[1])
		w.tap.Add(f)
		var want []map[string]string
		for i, m := range sdpGreetings(t, ends[0].Addr(), ends[1].Addr()) {
			w.sendBatch(t, i == 1, func(b *link.Batch, to *wire.Path) { layCM(b, to, m, 7) })
			want = append(want, m.fields)
		}
		for i, m := range sdpMessages() {
			w.sendBatch(t, false, func(b *link.Batch, to *wire.Path) { laySDP(b, to, sdpQPB, wire.PSN(i), m) })
			w.sendBatch(t, true, func(b *link.Batch, to *wire.Path) { laySDP(b, to, sdpQPA, wire.PSN(i), m) })
			want = append(want, sdpBase(t, m), sdpBase(t, m))
		}
		require.NoError(t, f.Close())
		require.Equal(t, want, dissect(t, tshark, "infiniband_sdp", path, want))
	}
}
