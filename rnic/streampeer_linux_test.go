package rnic

import (
	"encoding/binary"
	"encoding/hex"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/iwarp"
	"github.com/softrnic/softrnic/verbs"
)

// A rawPeer is the other end of a connection with iWARP, which sends what a test makes it send.
type rawPeer struct {
	t    *testing.T
	conn net.Conn
}

const rawPeerQPN = 77

// dialRaw connects a raw peer to the queue pair of e by the request q, to which the private data that
// names the queue pair is added, and returns the reply.
func dialRaw(t *testing.T, e *end, q iwarp.Handshake) (*rawPeer, iwarp.Handshake) {
	t.Helper()
	at := netip.MustParseAddrPort("127.0.0.1:1") // smaller than the device's, so that the peer dials
	local, err := verbs.LocalEndpoint(e.dev, e.qp, 1)
	require.NoError(t, err)
	remote := verbs.Endpoint{GID: verbs.GIDFromAddr(at.Addr()), UDPPort: at.Port(), QPN: rawPeerQPN, PSN: 1}
	require.NoError(t, verbs.Connect(e.qp, local, remote, verbs.ConnectOptions{}))

	dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(at.Addr(), 0))}
	conn, err := dialer.Dial("tcp", e.dev.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	q.Private = []byte(endpointMagic)
	for _, n := range []uint32{uint32(at.Port()), rawPeerQPN, e.qp.Num()} {
		q.Private = binary.BigEndian.AppendUint32(q.Private, n)
	}
	require.NoError(t, writeHandshake(conn, q))
	reply, err := readHandshake(conn, true)
	require.NoError(t, err)
	return &rawPeer{t, conn}, reply
}

// send sends an FPDU with a header and payload, of which edit may change bytes before the CRC.
func (p *rawPeer) send(h iwarp.Header, payload []byte, edit func(fpdu []byte)) {
	segment := h.Len() + len(payload)
	b := make([]byte, iwarp.FPDULen(segment))
	binary.BigEndian.PutUint16(b, uint16(segment))
	h.Put(b[iwarp.LengthLen:])
	copy(b[iwarp.LengthLen+h.Len():], payload)
	if edit != nil {
		edit(b)
	}
	end := len(b) - iwarp.CRCLen
	iwarp.PutCRC(b[end:], iwarp.AddCRC(0, b[:end]))
	_, err := p.conn.Write(b)
	require.NoError(p.t, err)
}

// receive returns the next segment from the device, whose CRC must be right.
func (p *rawPeer) receive() (iwarp.Header, []byte) {
	p.t.Helper()
	length := make([]byte, iwarp.LengthLen)
	_, err := io.ReadFull(p.conn, length)
	require.NoError(p.t, err)
	segment := int(binary.BigEndian.Uint16(length))
	b := append(length, make([]byte, iwarp.FPDULen(segment)-iwarp.LengthLen)...)
	_, err = io.ReadFull(p.conn, b[iwarp.LengthLen:])
	require.NoError(p.t, err)
	end := len(b) - iwarp.CRCLen
	require.Equal(p.t, iwarp.AddCRC(0, b[:end]), iwarp.ReadCRC(b[end:]))
	h, bad := iwarp.ParseHeader(b[iwarp.LengthLen:])
	require.Equal(p.t, iwarp.CodeNone, bad)
	return h, b[iwarp.LengthLen+h.Len() : iwarp.LengthLen+segment]
}

// standardRequest is a request without the extensions.
func standardRequest() iwarp.Handshake {
	q := iwarp.NewRequest(1, 1, true, nil)
	q.Extended = false
	return q
}

// rtr is the ready-to-receive indication.
var rtr = iwarp.Header{Opcode: iwarp.OpWrite, Last: true}

// TestMalformedFPDUs sends each malformed FPDU to a queue pair, and checks the TERMINATE and that the
// queue pair is in StateErr.
func TestMalformedFPDUs(t *testing.T) {
	send := iwarp.Header{Opcode: iwarp.OpSend, Last: true, MSN: 1}
	request := func(r iwarp.ReadRequest) []byte {
		b := make([]byte, iwarp.ReadRequestLen)
		r.Put(b)
		return b
	}
	read := iwarp.Header{Opcode: iwarp.OpReadRequest, Last: true, Queue: 1, MSN: 1}
	for name, c := range map[string]struct {
		h       iwarp.Header
		payload []byte
		edit    func(b []byte)
		want    string // begin of the TERMINATE
	}{
		"unknown source of a read":   {read, request(iwarp.ReadRequest{SinkSTag: 1, Length: 64, SourceSTag: 0xdeadbeef}), nil, "0100e000002e4141"},
		"unknown target of a write":  {iwarp.Header{Opcode: iwarp.OpWrite, Last: true, STag: 0xdeadbeef}, make([]byte, 8), nil, "1100c0000016c140deadbeef"},
		"long write":                 {iwarp.Header{Opcode: iwarp.OpWrite, Last: true, STag: 0xdeadbeef}, make([]byte, 40000), nil, "1100c000"},
		"response without a read":    {iwarp.Header{Opcode: iwarp.OpReadResponse, Last: true, STag: 5}, make([]byte, 8), nil, "1100c000"},
		"opcode":                     {send, make([]byte, 16), func(b []byte) { b[3] |= 0xf }, "0206c000"},
		"immediate data":             {iwarp.Header{Opcode: iwarp.OpImmediate, Last: true, MSN: 1}, make([]byte, 8), nil, "0206c000"},
		"version of RDMAP":           {send, nil, func(b []byte) { b[3] ^= 0xc0 }, "0205c000"},
		"version of DDP":             {send, nil, func(b []byte) { b[2] ^= 3 }, "1206c000"},
		"version of DDP, tagged":     {rtr, nil, func(b []byte) { b[2] ^= 3 }, "1104c000"},
		"number of message":          {iwarp.Header{Opcode: iwarp.OpSend, Last: true, MSN: 7}, make([]byte, 16), nil, "1203c000"},
		"offset":                     {iwarp.Header{Opcode: iwarp.OpSend, Last: true, MSN: 1, Message: 8}, make([]byte, 16), nil, "1204c000"},
		"queue":                      {send, make([]byte, 16), func(b []byte) { b[11] = 9 }, "1201c000"},
		"message too long":           {send, make([]byte, 100), nil, "1205c000"},
		"message too long, two ways": {send, make([]byte, 50000), nil, "1205c000"},
		"length of a read request":   {read, make([]byte, 40), nil, "1205c000"},
		"shorter than its header":    {send, nil, func(b []byte) { b[1] = 5 }, "20030000"},
		"invalidation of no window":  {iwarp.Header{Opcode: iwarp.OpSendInv, Last: true, MSN: 1, Key: 5}, nil, nil, "01090000"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnd(t, Options{Wire: IWARP})
			require.NoError(t, verbs.ToInit(e.qp, verbs.AccessRemote))
			e.recv(t, 1, 0, 16)
			p, _ := dialRaw(t, e, standardRequest())
			p.send(rtr, nil, nil)
			p.send(c.h, c.payload, c.edit)
			h, payload := p.receive()
			require.Equal(t, iwarp.OpTerminate, h.Opcode)
			require.Equal(t, c.want, hex.EncodeToString(payload[:min(len(payload), len(c.want)/2)]))
			_, err := p.conn.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF)
			require.Equal(t, verbs.StateErr, e.qp.State())
			require.NotEqual(t, verbs.WCSuccess, e.next(t).Status)
		})
	}
	t.Run("CRC", func(t *testing.T) {
		e := newEnd(t, Options{Wire: IWARP})
		p, _ := dialRaw(t, e, standardRequest())
		_, err := p.conn.Write([]byte("\x00\x12\x41\x43\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00" + "\x00\x00\x00\x00"))
		require.NoError(t, err)
		h, payload := p.receive()
		require.Equal(t, iwarp.OpTerminate, h.Opcode)
		require.Equal(t, "20020000", hex.EncodeToString(payload))
		require.Equal(t, verbs.StateErr, e.qp.State())
	})
	t.Run("no receive", func(t *testing.T) {
		e := newEnd(t, Options{Wire: IWARP})
		p, _ := dialRaw(t, e, standardRequest())
		p.send(send, nil, nil)
		h, payload := p.receive()
		require.Equal(t, iwarp.OpTerminate, h.Opcode)
		require.Equal(t, "1202c000", hex.EncodeToString(payload[:4]))
		require.Equal(t, verbs.StateErr, e.qp.State())
	})
}

// TestResponderSendsSecond checks that a responder sends nothing before it has got an FPDU, that one
// which agreed to the indication needs no more than that, and that requests which a stranger does not
// have are refused.
func TestResponderSendsSecond(t *testing.T) {
	for _, peerToPeer := range []bool{false, true} {
		e := newEnd(t, Options{Wire: IWARP})
		require.NoError(t, verbs.ToInit(e.qp, verbs.AccessRemote))
		e.recv(t, 1, 0, 16)
		q := standardRequest()
		q.PeerToPeer = peerToPeer
		p, reply := dialRaw(t, e, q)
		require.Equal(t, peerToPeer, reply.PeerToPeer)
		require.False(t, reply.Extended)
		e.post(t, verbs.SendWR{WRID: 5, Opcode: verbs.WRSend, SGList: []verbs.SGE{e.mr.SGE(0, 8)}})
		require.Zero(t, e.cq.Len()) // held back, so that the first segment that arrives is after ours
		if peerToPeer {
			p.send(rtr, nil, nil)
		} else {
			p.send(iwarp.Header{Opcode: iwarp.OpSend, Last: true, MSN: 1}, make([]byte, 16), nil)
			require.Equal(t, verbs.WCRecv, e.poll1(t).Opcode)
		}
		h, payload := p.receive()
		require.Equal(t, iwarp.Header{Opcode: iwarp.OpSend, Last: true, MSN: 1}, h)
		require.Len(t, payload, 8)
		require.EqualValues(t, 5, e.poll1(t).WRID)
		for _, op := range []verbs.WROpcode{verbs.WRSendWithImm, verbs.WRRDMAWriteWithImm, verbs.WRAtomicFetchAdd, verbs.WRFlush} {
			_, err := e.qp.PostSend([]verbs.SendWR{{Opcode: op, SGList: []verbs.SGE{e.mr.SGE(0, 8)}}})
			require.ErrorIs(t, err, verbs.ErrUnsupported, op)
		}
	}
}

// TestReadSinkIsLentOnce checks that a READ lends its memory to one response, under a key that is not
// that of the region, and that a second response ends the connection.
func TestReadSinkIsLentOnce(t *testing.T) {
	e := newEnd(t, Options{Wire: IWARP})
	p, _ := dialRaw(t, e, standardRequest())
	p.send(rtr, nil, nil)
	e.post(t, verbs.SendWR{Opcode: verbs.WRRDMARead, SGList: []verbs.SGE{e.mr.SGE(16, 3), e.mr.SGE(32, 5)}, RemoteAddr: 1000, RKey: 2000})
	h, payload := p.receive()
	require.Equal(t, iwarp.OpReadRequest, h.Opcode)
	r := iwarp.ParseReadRequest(payload)
	require.EqualValues(t, 2000, r.SourceSTag)
	require.EqualValues(t, 1000, r.SourceOffset)
	require.EqualValues(t, 8, r.Length)
	require.NotEqual(t, e.mr.RKey(), r.SinkSTag)
	response := iwarp.Header{Opcode: iwarp.OpReadResponse, Last: true, STag: r.SinkSTag, Offset: r.SinkOffset}
	p.send(response, []byte("abcdefgh"), nil)
	require.EqualValues(t, 8, e.poll1(t).ByteLen)
	require.Equal(t, "abc", string(e.mr.Bytes()[16:19]))
	require.Equal(t, "defgh", string(e.mr.Bytes()[32:37]))
	p.send(response, []byte("ijklmnop"), nil)
	h, payload = p.receive()
	require.Equal(t, iwarp.OpTerminate, h.Opcode)
	require.Equal(t, "1100c000", hex.EncodeToString(payload[:4]))
	require.Equal(t, "abc", string(e.mr.Bytes()[16:19]))
}

// TestCutConnection cuts the connection in several states, and checks that posted work fails with the
// reason.
func TestCutConnection(t *testing.T) {
	for name, c := range map[string]struct {
		bytes []byte
		reset bool
		want  string
	}{
		"between FPDUs":           {nil, false, "the peer closed the TCP connection"},
		"in the middle of one":    {[]byte{0, 50, 0x41, 0x43, 0}, false, "in the middle of an FPDU"},
		"reset":                   {nil, true, "the TCP connection failed"},
		"while a write is placed": {nil, false, "in the middle of an FPDU"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnd(t, Options{Wire: IWARP})
			p, _ := dialRaw(t, e, standardRequest())
			p.send(rtr, nil, nil)
			e.post(t, verbs.SendWR{WRID: 1, Opcode: verbs.WRRDMARead, SGList: []verbs.SGE{e.mr.SGE(0, 8)}})
			e.post(t, verbs.SendWR{WRID: 2, Opcode: verbs.WRSend, Flags: verbs.SendFence})
			p.receive()
			b := c.bytes
			if name == "while a write is placed" {
				h := iwarp.Header{Opcode: iwarp.OpWrite, Last: true, STag: e.mr.RKey(), Offset: e.mr.Addr()}
				b = make([]byte, 1000)
				binary.BigEndian.PutUint16(b, 30000)
				h.Put(b[iwarp.LengthLen:])
			}
			_, err := p.conn.Write(b)
			require.NoError(t, err)
			if c.reset {
				p.conn.(*net.TCPConn).SetLinger(0)
			}
			p.conn.Close()
			wc := e.next(t)
			require.EqualValues(t, 1, wc.WRID)
			require.Equal(t, verbs.WCRetryExcErr, wc.Status)
			require.ErrorContains(t, wc.Err(), c.want)
			wc = e.next(t)
			require.EqualValues(t, 2, wc.WRID)
			require.Equal(t, verbs.WCWRFlushErr, wc.Status)
			require.Equal(t, verbs.StateErr, e.qp.State())
		})
	}
}

// TestStrangersAtTheDevicePort checks that requests for markers and for nothing are rejected, and that
// other bytes close the connection.
func TestStrangersAtTheDevicePort(t *testing.T) {
	e := newEnd(t, Options{Wire: IWARP})
	dial := func(b []byte) net.Conn {
		conn, err := net.Dial("tcp", e.dev.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(patience))
		_, err = conn.Write(b)
		require.NoError(t, err)
		return conn
	}
	_, err := dial([]byte("GET / HTTP/1.1\r\n\r\n")).Read(make([]byte, 1))
	require.Error(t, err)
	q := standardRequest()
	reply, err := readHandshake(dial(q.AppendTo(nil)), true)
	require.NoError(t, err)
	require.True(t, reply.Reject)
}

// TestStallingStrangersAreDropped checks that peers which do not complete their request lose the
// connection, at the port of the device and at a listener of a connection manager.
func TestStallingStrangersAreDropped(t *testing.T) {
	e := newEnd(t, Options{Wire: IWARP})
	e.dev.connector.requestTimeout.Store(int64(time.Millisecond))
	l, err := e.dev.connector.Listen(0, func(adapter.StreamRequest) { t.Error("an incomplete request was served") }, func() {})
	require.NoError(t, err)
	defer l.Close()
	q := standardRequest()
	whole := q.AppendTo(nil)
	for _, at := range []netip.AddrPort{e.dev.Addr(), l.Addr()} {
		for _, n := range []int{0, 5, len(whole) - 1} {
			conn, err := net.Dial("tcp", at.String())
			require.NoError(t, err)
			t.Cleanup(func() { conn.Close() })
			_, err = conn.Write(whole[:n])
			require.NoError(t, err)
			conn.SetReadDeadline(time.Now().Add(patience))
			_, err = conn.Read(make([]byte, 1))
			require.Error(t, err)
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
		}
	}
}
