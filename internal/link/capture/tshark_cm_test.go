package capture

import (
	"bytes"
	"fmt"
	"maps"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/wire"
	"github.com/softrnic/softrnic/wire/mad"
)

// cmMessage is a message of connection management, and the fields that the dissector must show.
type cmMessage struct {
	attr   mad.Attr
	body   mad.Message
	fields map[string]string // below infiniband.
}

// cmMessages are all messages, with a distinct value in every field that the dissector shows. The
// path's flow label and packet rate are not among them: Wireshark 4.0 shows them wrong also in
// packets of Linux (0x009cb for 0x9cb0d, the first packet of
// testdata/packets/rxe-capture/cm-rping.pcap).
func cmMessages(from, to netip.Addr) []cmMessage {
	path := mad.Path{
		LocalLID: mad.LIDPermissive, RemoteLID: mad.LIDPermissive, LocalGID: from.As16(), RemoteGID: to.As16(),
		FlowLabel: 0xabcde, PacketRate: 2, TrafficClass: 0x6a, HopLimit: 64, SL: 3, SubnetLocal: true, AckTimeout: 19,
	}
	private := make([]byte, mad.REQPrivateLen)
	mad.CMAHeader{Src: netip.AddrPortFrom(from, 50123), Dst: to}.Put(private)
	copy(private[mad.CMAHeaderLen:], "private data")
	gid, ip := "cm.req.prim_localgid_ipv4", "cm.req.ip_cm.sip4"
	remoteGID, remoteIP := "cm.req.prim_remotegid_ipv4", "cm.req.ip_cm.dip4"
	if from.Is6() {
		gid, ip, remoteGID, remoteIP = "cm.req.prim_localgid", "cm.req.ip_cm.sip6", "cm.req.prim_remotegid", "cm.req.ip_cm.dip6"
	}
	return []cmMessage{
		{mad.AttrREQ, &mad.REQ{
			LocalID: 0x11121314, ServiceID: mad.ServiceIDOf(mad.PortSpaceTCP, 7174), CAGUID: 0x2122232425262728, QKey: 0x31323334, QPN: 0x414243,
			ResponderResources: 16, InitiatorDepth: 15, LocalEECN: 0x515253, RemoteEECN: 0x616263, RemoteResponseTimeout: 20, LocalResponseTimeout: 21,
			MaxCMRetries: 14, Transport: mad.TransportUC, FlowControl: true, SRQ: true, StartingPSN: 0x717273, RetryCount: 6, RNRRetry: 5,
			PKey: 0xffff, MTU: 4, Primary: path, PrivateData: private,
		}, map[string]string{
			"cm.req": "0x11121314", "cm.req.serviceid.prefix": "0000000001", "cm.req.serviceid.protocol": "0x06", "cm.req.serviceid.dport": "0x1c06",
			"cm.req.localcaguid": "0x2122232425262728", "cm.req.localqkey": "0x31323334", "cm.req.localqpn": "0x414243",
			"cm.req.responderres": "0x10", "cm.req.initdepth": "0x0f", "cm.req.localeecn": "0x515253", "cm.req.remoteeecn": "0x616263",
			"cm.req.remoteresptout": "0x14", "cm.req.localresptout": "0x15", "cm.req.maxcmretr": "0x0e", "cm.req.transpsvctype": "0x01",
			"cm.req.e2eflowctrl": "0x01", "cm.req.srq": "0x01", "cm.req.startpsn": "0x717273", "cm.req.retrcount": "0x06",
			"cm.req.rnrretrcount": "0x05", "cm.req.pkey": "0xffff", "cm.req.pppmtu": "0x04", "cm.req.rdcexist": "0x00",
			"cm.req.prim_locallid": "65535", "cm.req.prim_remotelid": "65535", gid: from.String(), remoteGID: to.String(),
			"cm.req.prim_tfcclass": "0x6a", "cm.req.prim_hoplim": "0x40",
			"cm.req.prim_sl": "0x03", "cm.req.prim_subnetlocal": "0x01", "cm.req.prim_localacktout": "0x13",
			"cm.req.ip_cm.sport": "0xc3cb", ip: from.String(), remoteIP: to.String(),
			"cm.req.ip_cm.private": fmt.Sprintf("%x", private[mad.CMAHeaderLen:]),
		}},
		{mad.AttrMRA, &mad.MRA{LocalID: 1, RemoteID: 2, ServiceTimeout: 7}, nil},
		{mad.AttrREJ, &mad.REJ{LocalID: 0x11121314, RemoteID: 0x21222324, Message: 1, Reason: mad.RejInvalidServiceID, Info: []byte("why"), PrivateData: []byte("text")}, map[string]string{
			"cm.rej.localcommid": "0x11121314", "cm.rej.remotecommid": "0x21222324", "cm.rej.msgrej": "0x01", "cm.rej.rejinfolen": "0x03",
			"cm.rej.reason": "0x0008", "cm.rej.ari": padded("why", mad.REJInfoLen), "cm.rej.private": padded("text", mad.REJPrivateLen),
		}},
		{mad.AttrREP, &mad.REP{
			LocalID: 0x11121314, RemoteID: 0x21222324, QKey: 0x31323334, QPN: 0x414243, LocalEECN: 0x515253, StartingPSN: 0x616263,
			ResponderResources: 16, InitiatorDepth: 15, TargetAckDelay: 9, Failover: 1, FlowControl: true, RNRRetry: 5, SRQ: true,
			CAGUID: 0x7172737475767778, PrivateData: []byte("welcome"),
		}, map[string]string{
			"cm.rep": "0x11121314", "cm.rep.remotecommid": "0x21222324", "cm.rep.localqkey": "0x31323334", "cm.rep.localqpn": "0x414243",
			"cm.rep.localeecn": "0x515253", "cm.rep.startpsn": "0x616263", "cm.rep.respres": "0x10", "cm.rep.initdepth": "0x0f",
			"cm.rep.tgtackdelay": "0x09", "cm.rep.failoveracc": "0x01", "cm.rep.e2eflowctrl": "0x01", "cm.rep.rnrretrcount": "0x05", "cm.rep.srq": "0x01",
			"cm.rep.localcaguid": "0x7172737475767778", "cm.rep.private": padded("welcome", mad.REPPrivateLen),
		}},
		{mad.AttrRTU, &mad.RTU{LocalID: 0x11121314, RemoteID: 0x21222324, PrivateData: []byte("go")}, map[string]string{
			"cm.rtu.localcommid": "0x11121314", "cm.rtu.remotecommid": "0x21222324", "cm.rtu.private": padded("go", mad.RTUPrivateLen),
		}},
		{mad.AttrDREQ, &mad.DREQ{LocalID: 0x11121314, RemoteID: 0x21222324, RemoteQPN: 0x414243, PrivateData: []byte("bye")}, map[string]string{
			"cm.dreq.localcommid": "0x11121314", "cm.dreq.remotecommid": "0x21222324", "cm.req.remoteqpneecn": "0x414243",
			"cm.dreq.private": padded("bye", mad.DREQPrivateLen),
		}},
		{mad.AttrDREP, &mad.DREP{LocalID: 0x11121314, RemoteID: 0x21222324, PrivateData: []byte("bye")}, map[string]string{
			"cm.drsp.localcommid": "0x11121314", "cm.drsp.remotecommid": "0x21222324", "cm.drsp.private": padded("bye", mad.DREPPrivateLen),
		}},
		{mad.AttrSIDRReq, &mad.SIDRReq{RequestID: 1, PKey: 0xffff, ServiceID: mad.ServiceIDOf(mad.PortSpaceUDP, 7174), PrivateData: private}, nil},
		{mad.AttrSIDRRep, &mad.SIDRRep{RequestID: 1, QPN: 0x414243, ServiceID: mad.ServiceIDOf(mad.PortSpaceUDP, 7174), QKey: mad.UDPQKey}, nil},
		{mad.AttrAPR, &mad.APR{LocalID: 1, RemoteID: 2, Status: mad.APRUnsupported}, nil},
	}
}

// padded returns text in a field of n bytes, as the dissector prints it.
func padded(text string, n int) string {
	return fmt.Sprintf("%x", append([]byte(text), make([]byte, n-len(text))...))
}

// TestTsharkCM has Wireshark's dissector read every message of connection management. It compares
// each field of the messages that the dissector parses, and the header of the others.
func TestTsharkCM(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed: the dissector's verdict on connection management is missing")
	}
	for _, ends := range [][2]netip.AddrPort{{addr4A, addr4B}, {addr6A, addr6B}} {
		path := filepath.Join(t.TempDir(), "cm.pcapng")
		f, err := Create(path, nil)
		require.NoError(t, err)
		w := connect(t, ends[0], ends[1])
		w.tap.Add(f)
		messages := cmMessages(ends[0].Addr(), ends[1].Addr())
		for i, m := range messages {
			b := link.NewBatch(1 << 10)
			layCM(b, &wire.Path{Dst: w.peer.LocalAddr()}, m, uint64(i))
			require.NoError(t, w.tap.WriteBatch(b))
		}
		require.NoError(t, f.Close())
		var want []map[string]string
		for i, m := range messages {
			fields := map[string]string{
				"bth.opcode": "100", "bth.destqp": "0x000001", "deth.srcqp": "0x00000001", "mad.baseversion": "0x01", "mad.mgmtclass": "0x07",
				"mad.classversion": "0x02", "mad.method": "0x03", "mad.status": "0x0000", "mad.transactionid": fmt.Sprintf("0x%016x", 0xabcd0000+uint64(i)),
				"mad.attributeid": fmt.Sprintf("0x%04x", uint16(m.attr)), "mad.attributemodifier": "0x00000000",
			}
			maps.Copy(fields, m.fields)
			want = append(want, fields)
		}
		require.Equal(t, want, dissect(t, tshark, "infiniband", path, want))
	}
}

// dissect returns the wanted fields of each packet that tshark finds, which belong to one protocol.
// It must not report a malformed packet. tshark reads the file twice, because it parses the private
// data of a REQ only when it knows the whole REQ.
func dissect(t *testing.T, tshark, protocol, path string, want []map[string]string) (got []map[string]string) {
	t.Helper()
	all := make(map[string]string)
	for _, fields := range want {
		maps.Copy(all, fields)
	}
	names := slices.Sorted(maps.Keys(all))
	args := []string{"-2", "-r", path, "-T", "fields", "-E", "separator=|", "-e", "_ws.malformed", "-e", "_ws.expert.message"}
	for _, name := range names {
		args = append(args, "-e", protocol+"."+name)
	}
	cmd := exec.Command(tshark, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", &stderr)
	for line := range strings.Lines(string(out)) {
		values := strings.Split(strings.TrimSuffix(line, "\n"), "|")
		require.Len(t, values, len(names)+2, "%s%s", out, &stderr)
		require.Empty(t, values[0]+values[1], "the dissector complains")
		fields := make(map[string]string)
		for i, value := range values[2:] {
			if value != "" {
				fields[names[i]] = value
			}
		}
		got = append(got, fields)
	}
	return got
}

// layCM appends a message of connection management to a batch.
func layCM(b *link.Batch, to *wire.Path, m cmMessage, number uint64) {
	info := wire.UDSendOnly.Info()
	pkt := b.Next(to, info.HeaderLen+mad.Size+wire.ICRCLen)
	h := wire.BTH{Opcode: wire.UDSendOnly, PKey: wire.DefaultPKey, DestQPN: wire.QPNGSI, PSN: wire.PSN(number)}
	h.Put(pkt)
	wire.DETH{QKey: wire.QKeyGSI, SrcQPN: wire.QPNGSI}.Put(pkt[wire.BTHLen:])
	mad.Put((*[mad.Size]byte)(pkt[info.HeaderLen:]), mad.Header{TID: 0xabcd0000 + number, Attr: m.attr}, m.body)
}
