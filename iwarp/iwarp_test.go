package iwarp

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCRC checks the CRC with the check string of the polynomial and with figures 5 and 6 of RFC 5044,
// whose FPDUs have a marker.
func TestCRC(t *testing.T) {
	require.Equal(t, uint32(0xe3069283), AddCRC(0, []byte("123456789")))
	require.Equal(t, uint32(0xe3069283), AddCRC(AddCRC(0, []byte("12345")), []byte("6789")))
	for _, c := range []struct{ head, crc string }{
		{"00000000" + "002a4143000000000000000000000001" + "00000000", "52239983"},
		{"002a4143000000000000000000000002" + "00000000" + "00000014", "84925898"},
	} {
		b, err := hex.DecodeString(c.head)
		require.NoError(t, err)
		sum := make([]byte, CRCLen)
		PutCRC(sum, AddCRC(0, append(b, make([]byte, 24)...)))
		require.Equal(t, c.crc, hex.EncodeToString(sum))
		require.Equal(t, AddCRC(0, append(b, make([]byte, 24)...)), ReadCRC(sum))
	}
}

// TestHeaders checks the bytes of headers, and that parsing is the inverse.
func TestHeaders(t *testing.T) {
	for _, c := range []struct {
		h    Header
		want string
	}{
		{Header{Opcode: OpSend, Last: true, MSN: 1}, "4143" + "00000000" + "00000000" + "00000001" + "00000000"},
		{Header{Opcode: OpWrite, Last: true, STag: 0x11223344, Offset: 0x1000}, "c140" + "11223344" + "0000000000001000"},
		{Header{Opcode: OpReadRequest, Last: true, Queue: 1, MSN: 3}, "4141" + "00000000" + "00000001" + "00000003" + "00000000"},
		{Header{Opcode: OpReadResponse, Last: true, STag: 5, Offset: 6}, "c142" + "00000005" + "0000000000000006"},
		{Header{Opcode: OpSendInv, MSN: 2, Message: 100, Key: 9}, "0144" + "00000009" + "00000000" + "00000002" + "00000064"},
	} {
		b := make([]byte, c.h.Len())
		c.h.Put(b)
		require.Equal(t, c.want, hex.EncodeToString(b))
		require.Equal(t, len(b), HeaderLen(b[0]))
		h, bad := ParseHeader(b)
		require.Equal(t, CodeNone, bad)
		require.Equal(t, c.h, h)
	}
}

// TestMalformedHeaders checks the code with which each malformed header is answered.
func TestMalformedHeaders(t *testing.T) {
	for name, c := range map[string]struct {
		h    Header
		edit func(b []byte)
		want Code
	}{
		"DDP version, tagged":   {Header{Opcode: OpWrite}, func(b []byte) { b[0] ^= 3 }, TaggedVersion},
		"DDP version, untagged": {Header{Opcode: OpSend}, func(b []byte) { b[0] ^= 3 }, UntaggedVersion},
		"RDMAP version":         {Header{Opcode: OpSend}, func(b []byte) { b[1] ^= 0xc0 }, RDMAPVersion},
		"queue":                 {Header{Opcode: OpSend}, func(b []byte) { b[9] = 9 }, InvalidQueue},
		"queue of another":      {Header{Opcode: OpSend}, func(b []byte) { b[9] = 1 }, UnexpectedOpcode},
		"opcode":                {Header{Opcode: OpSend}, func(b []byte) { b[1] |= 0xf }, UnexpectedOpcode},
		"tagged message":        {Header{Opcode: OpWrite}, func(b []byte) { b[1] |= byte(OpSend) }, UnexpectedOpcode},
		"untagged write":        {Header{Opcode: OpSend}, func(b []byte) { b[1] &^= 0xf }, UnexpectedOpcode},
	} {
		b := make([]byte, UntaggedLen)
		c.h.Put(b)
		c.edit(b)
		_, bad := ParseHeader(b)
		require.Equal(t, c.want, bad, name)
	}
}

// TestRequests checks that requests, responses and immediate data are parsed as they were written.
func TestRequests(t *testing.T) {
	b := make([]byte, AtomicRequestLen)
	r := ReadRequest{SinkSTag: 1, SinkOffset: 2, Length: 3, SourceSTag: 4, SourceOffset: 5}
	r.Put(b)
	require.Equal(t, "00000001"+"0000000000000002"+"00000003"+"00000004"+"0000000000000005", hex.EncodeToString(b[:ReadRequestLen]))
	require.Equal(t, r, ParseReadRequest(b))
	for _, a := range []AtomicRequest{
		{Op: FetchAdd, ID: 1, STag: 2, Offset: 3, Data: 4}, {Op: CmpSwap, ID: 1, STag: 2, Offset: 3, Data: 4, Compare: 5},
	} {
		a.Put(b)
		got, ok := ParseAtomicRequest(b)
		require.True(t, ok)
		require.Equal(t, a, got)
	}
	b[3] = 1
	_, ok := ParseAtomicRequest(b)
	require.False(t, ok)
	PutAtomicResponse(b, 7, 8)
	id, value := ParseAtomicResponse(b)
	require.EqualValues(t, 7, id)
	require.EqualValues(t, 8, value)
	PutImmediate(b, 9, 10)
	length, imm := ParseImmediate(b)
	require.EqualValues(t, 9, length)
	require.EqualValues(t, 10, imm)
}

// TestTerminate checks the bytes of a Terminate in the order of the RFC, and that one of siw, which
// swaps them, is read as well.
func TestTerminate(t *testing.T) {
	w := Header{Opcode: OpWrite, Last: true, STag: 0xdeadbeef}
	head := make([]byte, TaggedLen)
	w.Put(head)
	m := Terminate{Code: TaggedInvalidSTag, Length: 22, Segment: head}
	b := m.AppendTo(nil)
	require.Equal(t, "1100c000"+"0016"+hex.EncodeToString(head), hex.EncodeToString(b))
	got, ok := ParseTerminate(b)
	require.True(t, ok)
	require.Equal(t, m, got)

	request := make([]byte, ReadRequestLen)
	q := Header{Opcode: OpReadRequest, Last: true, Queue: 1, MSN: 1}
	head = make([]byte, UntaggedLen)
	q.Put(head)
	m = Terminate{Code: InvalidSTag, Length: 46, Segment: head, Request: request}
	b = m.AppendTo(nil)
	require.Equal(t, "0100e000", hex.EncodeToString(b[:4]))
	require.LessOrEqual(t, len(b), MaxTerminateLen)
	got, ok = ParseTerminate(b)
	require.True(t, ok)
	require.Equal(t, m, got)

	for text, want := range map[string]Code{
		"02020000": CRCMismatch, "10000700": InvalidSTag, "11000300": TaggedInvalidSTag, "20060000": TooFewReads, // which siw means as UnexpectedOpcode
		"21030300": MSNOutOfRange, "21010300": InvalidQueue, "21020300": NoBuffer,
		"20020000": CRCMismatch, "0206c000": UnexpectedOpcode, "1203c000": MSNOutOfRange,
	} {
		b, err := hex.DecodeString(text)
		require.NoError(t, err)
		got, ok := ParseTerminate(b)
		require.True(t, ok)
		require.Equal(t, want, got.Code, text)
	}
	_, ok = ParseTerminate([]byte{1, 2, 3})
	require.False(t, ok)
}

// TestHandshake checks the bytes of requests and replies, those of siw among them, and what follows
// from them.
func TestHandshake(t *testing.T) {
	q := NewRequest(1, 1, true, []byte("hi"))
	b := q.AppendTo(nil)
	require.Equal(t, append([]byte("MPA ID Req Frame\x54\x02\x00\x06\x80\x01\xc0\x01"), "hi"...), b)
	for cut := range len(b) {
		_, need, err := ParseHandshake(b[:cut], false)
		require.ErrorIs(t, err, ErrShort)
		require.Greater(t, need, cut)
	}
	parsed, n, err := ParseHandshake(append(b, 1, 2, 3), false)
	require.NoError(t, err)
	require.Equal(t, len(b), n)
	require.Equal(t, q, parsed)

	r, responder, err := AnswerRequest(&parsed, 4, 4, false, []byte("yes"))
	require.NoError(t, err)
	require.Equal(t, Params{CRC: true, IRD: 1, ORD: 1, RTR: true, Extended: true}, responder)
	b = r.AppendTo(nil)
	require.Equal(t, append([]byte("MPA ID Rep Frame\x52\x02\x00\x07\x80\x01\x80\x01"), "yes"...), b)
	parsed, _, err = ParseHandshake(b, true)
	require.NoError(t, err)
	p, err := FinishRequest(&q, &parsed)
	require.NoError(t, err)
	require.Equal(t, Params{Initiator: true, CRC: true, IRD: 1, ORD: 1, RTR: true, Extended: true}, p)

	siw := []byte("MPA ID Rep Frame\x54\x02\x00\x04\x80\x01\x80\x01") // it returns the bits of the request
	parsed, _, err = ParseHandshake(siw, true)
	require.NoError(t, err)
	require.False(t, parsed.Extended)
}

// TestRefusedHandshakes checks that each request or reply that cannot be served is refused.
func TestRefusedHandshakes(t *testing.T) {
	request := func(edit func(*Handshake)) []byte {
		q := NewRequest(1, 1, true, nil)
		edit(&q)
		return q.AppendTo(nil)
	}
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"key of a reply": {[]byte("MPA ID Rep Frame"), ErrHandshake},
		"other bytes":    {[]byte("GET / HTTP/1.1\r\n"), ErrHandshake},
		"revision":       {request(func(q *Handshake) { q.Revision = 3 }), ErrHandshake},
		"too long":       {append([]byte("MPA ID Req Frame\x40\x02"), 0xff, 0xff), ErrHandshake},
		"no IRD":         {append([]byte("MPA ID Req Frame\x50\x02"), 0, 3, 1, 2, 3), ErrHandshake},
	} {
		_, _, err := ParseHandshake(c.b, false)
		require.ErrorIs(t, err, c.want, name)
	}
	q := NewRequest(1, 1, true, nil)
	q.Markers = true
	r, _, err := AnswerRequest(&q, 1, 1, true, []byte("unused"))
	require.ErrorIs(t, err, ErrMarkers)
	require.Equal(t, []byte("MPA ID Rep Frame\x70\x02\x00\x04\x00\x00\x00\x00"), r.AppendTo(nil))
	q = NewRequest(1, 1, true, nil)
	q.WriteRTR, q.ReadRTR, q.SendRTR = false, false, true
	_, _, err = AnswerRequest(&q, 1, 1, true, nil)
	require.ErrorIs(t, err, ErrNoRTR)

	q = NewRequest(1, 1, true, nil)
	for want, r := range map[error]Handshake{
		ErrRejected: q.NewReject(nil), ErrMarkers: {Markers: true}, ErrReads: {Enhanced: true, ORD: 2}, ErrNoRTR: {Enhanced: true, PeerToPeer: true},
	} {
		_, err := FinishRequest(&q, &r)
		require.ErrorIs(t, err, want)
	}
	_, err = FinishRequest(&q, &Handshake{Enhanced: true, ORD: NoLimit, IRD: NoLimit})
	require.NoError(t, err)
}

// TestLengths checks padding, and that an FPDU of the maximum segment fits in a TCP segment.
func TestLengths(t *testing.T) {
	for n := range 100 {
		require.Zero(t, (LengthLen+n+PadFor(n))%4)
		require.Less(t, PadFor(n), 4)
		require.Equal(t, LengthLen+n+PadFor(n)+CRCLen, FPDULen(n))
	}
	for mss := 200; mss < 70000; mss += 7 {
		n := MaxSegment(mss)
		require.LessOrEqual(t, n, MaxULPDU)
		if n < MaxULPDU {
			require.LessOrEqual(t, FPDULen(n), mss)
		}
	}
	require.Equal(t, MaxULPDU, MaxSegment(0))
}

// FuzzParse parses arbitrary bytes as everything, and checks that handshakes, headers and Terminates
// that are written again are parsed alike.
func FuzzParse(f *testing.F) {
	q := NewRequest(1, 2, true, []byte("private"))
	f.Add(q.AppendTo(nil))
	m := Terminate{Code: InvalidQueue, Segment: make([]byte, UntaggedLen)}
	f.Add(m.AppendTo(nil))
	random := make([]byte, 100)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	f.Add(random)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, reply := range []bool{false, true} {
			h, n, err := ParseHandshake(b, reply)
			if err == nil {
				again, _, err := ParseHandshake(h.AppendTo(nil), reply)
				require.NoError(t, err)
				require.LessOrEqual(t, n, len(b))
				require.Equal(t, h.Private, again.Private)
				require.Equal(t, h.IRD, again.IRD)
			}
		}
		if m, ok := ParseTerminate(b); ok && m.Segment != nil {
			require.Len(t, m.Segment, HeaderLen(m.Segment[0]))
		}
		if len(b) < AtomicRequestLen {
			return
		}
		if h, bad := ParseHeader(b); bad == CodeNone {
			out := make([]byte, h.Len())
			h.Put(out)
			require.True(t, bytes.Equal(out[2:], b[2:len(out)])) // reserved bits are before
		}
		ParseReadRequest(b)
		ParseAtomicRequest(b)
	})
}
