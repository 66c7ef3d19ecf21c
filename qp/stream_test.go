package qp

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/iwarp"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
)

// overTCP makes the queue pairs use TCP.
func overTCP(o *options) { o.config = func(c *Config) { c.Stream = true } }

// newStreamNode returns a queue pair in StateRTS with a connection.
func newStreamNode(t testing.TB, p iwarp.Params) *node {
	n := connect(t, overTCP).a
	require.NoError(t, n.AttachStream(1, StreamConfig{Params: p, MaxSegment: 1400, Seed: 1, Pool: new(StreamPool)}))
	return n
}

// output returns the bytes that n sends.
func (n *node) output(now reliability.Time) (sent []byte) {
	for {
		n.Drain(now, nil)
		vec := n.StreamOutput(now, nil)
		if len(vec) == 0 {
			n.CompleteWritten(now)
			return sent
		}
		k := 0
		for _, b := range vec {
			sent = append(sent, b...)
			k += len(b)
		}
		n.StreamWritten(k)
	}
}

// input passes bytes to n, at most chunk at a time, until it takes no more.
func (n *node) input(now reliability.Time, b []byte, chunk int) {
	for len(b) > 0 {
		vec := n.StreamBuffers(now, nil)
		k := 0
		for _, to := range vec {
			m := copy(to, b[k:min(chunk, len(b))])
			k += m
		}
		if k == 0 {
			return
		}
		n.StreamReceived(now, vec, k)
		b = b[k:]
	}
}

// appendFPDU appends an FPDU with a right CRC.
func appendFPDU(b []byte, h iwarp.Header, payload []byte) []byte {
	start, segment := len(b), h.Len()+len(payload)
	b = append(b, make([]byte, iwarp.FPDULen(segment))...)
	f := b[start:]
	binary.BigEndian.PutUint16(f, uint16(segment))
	h.Put(f[iwarp.LengthLen:])
	copy(f[iwarp.LengthLen+h.Len():], payload)
	end := len(f) - iwarp.CRCLen
	iwarp.PutCRC(f[end:], iwarp.AddCRC(0, f[:end]))
	return b
}

// TestResponderWaits checks that a responder sends nothing before the initiator's first FPDU, and without
// it only if it need not wait for an indication, after firstSendDelay.
func TestResponderWaits(t *testing.T) {
	send := verbs.SendWR{WRID: 5, Flags: verbs.SendSignaled, Opcode: verbs.WRSend}
	for _, rtr := range []bool{false, true} {
		n := newStreamNode(t, iwarp.Params{CRC: true, RTR: rtr})
		n.post(1, send)
		require.Empty(t, n.output(1))
		for _, now := range []reliability.Time{firstSendDelay, 1 + firstSendDelay, 100 * firstSendDelay} {
			n.Advance(now)
			sent := n.output(now)
			require.Equal(t, !rtr && now == 1+firstSendDelay, len(sent) > 0, "indication %v, at %d", rtr, now)
		}
		if rtr {
			require.Zero(t, n.Deadline())
			n.input(1, appendFPDU(nil, iwarp.Header{Opcode: iwarp.OpWrite, Last: true}, nil), 7)
			require.NotEmpty(t, n.output(1))
		}
		require.Equal(t, []string{"5 SEND len=0"}, n.takeCompletions())
	}
}

// TestWrittenRequestsOutliveThePeer checks that a request that is in the TCP stream completes when the peer
// closes it, and that one that is not there fails.
func TestWrittenRequestsOutliveThePeer(t *testing.T) {
	n := newStreamNode(t, iwarp.Params{Initiator: true, CRC: true, ORD: 1})
	n.post(1, verbs.SendWR{WRID: 1, Flags: verbs.SendSignaled, Opcode: verbs.WRSend})
	n.Drain(1, nil)
	total := 0
	for _, b := range n.StreamOutput(1, nil) {
		total += len(b)
	}
	n.StreamWritten(total)
	n.post(1, verbs.SendWR{WRID: 2, Flags: verbs.SendSignaled, Opcode: verbs.WRSend})
	n.StreamEnded(1, nil)
	require.Equal(t, []string{"1 SEND len=0", "2 RETRY_EXC_ERR"}, n.takeCompletions())
	require.Equal(t, verbs.StateErr, n.State())
}

// FuzzStream passes FPDUs of all kinds, whole and in pieces, right and corrupted, to a queue pair with
// receives and requests. It must not panic, store beyond what it permits, or buffer more than its input.
func FuzzStream(f *testing.F) {
	f.Add([]byte{1, 3, 0, 40, 1, 0, 0, 0, 200, 2, 9, 9})
	f.Add([]byte("\x03\x01\x01\x02\x05\x03\x02\x01\x06\x01\x10\x04\x02\x07\x05\x03"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &script{rest: data}
		flags := s.byte()
		n := newStreamNode(t, iwarp.Params{
			Initiator: flags&1 != 0, CRC: flags&2 != 0, Extended: flags&4 != 0, RTR: flags&8 != 0, ReadRTR: flags&16 != 0, IRD: 2, ORD: 2,
		})
		const size = 512
		backing := make([]byte, 3*size)
		foreign := n.mem.add(1<<50, backing[size:2*size], allAccess)
		n.mem.regions[foreign].foreign = true
		now := reliability.Time(1)
		var msn [iwarp.Queues]uint32
		for len(s.rest) > 0 {
			switch now += reliability.Time(s.byte()) * reliability.Millisecond; s.below(6) {
			case 0:
				_, _ = n.PostRecv([]verbs.RecvWR{{WRID: 1, SGList: []verbs.SGE{n.sge(s.below(256), s.below(256)), n.sge(1000, 8*s.below(256))}}})
			case 1:
				_, _ = n.PostSend(now, []verbs.SendWR{{
					Opcode: verbs.WROpcode(s.below(9)), Flags: verbs.SendFlags(s.byte()), SGList: []verbs.SGE{n.sge(0, 8*s.below(256))}, RemoteAddr: 8, RKey: 9,
				}})
			case 2:
				n.Advance(now)
			case 3:
				n.output(now)
			default:
				h := iwarp.Header{Opcode: iwarp.Opcode(s.below(16)), Last: s.below(4) > 0, STag: []uint32{n.key, foreign, 0, uint32(s.byte())}[s.below(4)], Message: uint32(s.below(2))}
				h.Offset = []uint64{n.base, 1 << 50, ^uint64(0)}[s.below(3)] + uint64(s.byte())
				if !h.Opcode.IsTagged() {
					h.Queue = h.Opcode.Queue()
					msn[h.Queue]++
					h.MSN = msn[h.Queue] + uint32(s.below(8)/7)
				}
				payload := s.bytes(s.below(200))
				if s.below(3) == 0 {
					payload = append(make([]byte, 8*s.below(256)), payload...)
				}
				b := appendFPDU(nil, h, payload)
				if s.below(4) == 0 {
					b[s.below(len(b))] ^= s.byte()
				}
				n.input(now, b, 1+s.below(256)*8)
			}
			require.LessOrEqual(t, len(n.stream.in.buf), streamInputBytes)
			require.LessOrEqual(t, len(n.stream.responses), 4)
		}
		n.output(now)
		n.StreamEnded(now, nil)
		require.Equal(t, make([]byte, 3*size), backing)
	})
}
