package protocol

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// script is the input of a fuzz test.
type script []byte

func (s *script) byte() (b byte) {
	if len(*s) > 0 {
		b, *s = (*s)[0], (*s)[1:]
	}
	return b
}

// fuzzed is a core with other ranks that send any packets.
type fuzzed struct {
	*evil
	requests []*Request
	back     map[*Request][]byte // the content of the memory of completed requests
	taken    []*Message
}

// id returns an id that may be known.
func (f *fuzzed) id(s *script) uint64 {
	n := s.byte()
	if slots := f.core.requests.slots; int(n) < len(slots) {
		return uint64(slots[n].epoch)<<32 | uint64(n)
	}
	return uint64(n)<<32 | uint64(s.byte())
}

// packet passes a packet that Header.Unmarshal accepts.
func (f *fuzzed) packet(s *script) {
	from := 1 + int(s.byte()%3)
	h := envelope.Header{Kind: envelope.Kind(s.byte() % 12), Flags: envelope.Flags(s.byte() % 8), Source: uint32(from), Tag: int32(s.byte() % 3)}
	h.ID, h.Length = f.id(s), uint64(s.byte())
	if s.byte() == 200 {
		h.Length <<= 30
	}
	payload := make([]byte, s.byte())
	switch h.Kind {
	case envelope.Eager:
		h.Length = uint64(len(payload))
	case envelope.RTS, envelope.CTS:
		payload = keyOf(uint64(len(payload)))
		if h.Kind == envelope.RTS && h.Flags != 0 {
			payload = nil
		}
	case envelope.FIN, envelope.Matched, envelope.Throttle:
		payload = nil
		h.Length &= 1
	}
	h.Bytes = uint32(len(payload))
	if h.Kind.Ordered() {
		ahead := uint32(s.byte())
		if ahead > 8 {
			ahead = 0
		}
		h.Seq = f.core.peers.Get(from).recvSeq + ahead
	}
	b := make([]byte, envelope.Size)
	h.MarshalTo(b)
	if h.Unmarshal(b) != nil {
		return
	}
	if err := f.core.HandlePacket(from, &h, payload); err != nil {
		require.True(f.t, errors.Is(err, ErrProtocol) || errors.Is(err, ErrUnexpectedLimit), "%v", err)
		f.core.FailPeer(from, err)
	}
	for i := range payload {
		payload[i] = 0xEE
	}
}

func (f *fuzzed) step(s *script) {
	c := f.core
	r := &Request{Envelope: match.Envelope{Tag: int32(s.byte()%4) - 1}}
	switch s.byte() % 16 {
	default:
		f.packet(s)
		return
	case 8:
		r.Dest, r.Sync, r.Buf = int(s.byte()%4), s.byte()%2 == 0, make([]byte, s.byte())
		r.Envelope.Tag = max(0, r.Envelope.Tag)
		c.Send(r)
	case 9:
		r.Envelope.Source, r.Buf = int32(s.byte()%5)-1, make([]byte, s.byte())
		c.Receive(r)
	case 10:
		r.Envelope.Source = int32(s.byte()%5) - 1
		if m := c.Probe(r.Envelope, s.byte()%2 == 0); m != nil && !m.node.Queued() {
			f.taken = append(f.taken, m)
		}
		return
	case 11:
		if len(f.taken) == 0 {
			return
		}
		r.Envelope, r.Buf = f.taken[0].Envelope, make([]byte, s.byte())
		c.ReceiveMessage(r, f.taken[0])
		f.taken = f.taken[1:]
	case 12:
		f.full = s.byte()%2 == 0
		if f.fault = nil; s.byte()%4 == 0 {
			f.fault = errors.New("no registration left")
		}
		f.limits.Rendezvous = Scheme(s.byte() % 3)
		c.Resume(1 + int(s.byte()%3))
		return
	case 13:
		if len(f.moves) > 0 {
			m := f.moves[0]
			f.moves = f.moves[1:]
			if !m.store {
				clear(m.b)
			}
			c.TransferDone(m.id, nil)
		}
		return
	case 14:
		if n := int(s.byte()); n < len(f.requests) {
			c.Cancel(f.requests[n])
		}
		_ = c.SendActive(int(s.byte()%4), envelope.Header{}, make([]byte, s.byte()))
		return
	case 15:
		r.Dest, r.Buf = 1+int(s.byte()%3), make([]byte, s.byte())
		if s.byte()%2 == 0 {
			c.Put(r, envelope.Key{})
		} else {
			c.Get(r, envelope.Key{})
		}
	}
	f.requests = append(f.requests, r)
}

// check checks the invariants.
func (f *fuzzed) check() {
	for _, r := range f.requests {
		if !r.Done {
			continue
		}
		if was, ok := f.back[r]; ok {
			require.Equal(f.t, was, r.Buf, "memory was written to after it was handed back")
			continue
		}
		f.back[r] = bytes.Clone(r.Buf)
		if len(r.Buf) == 0 {
			continue
		}
		for _, b := range f.exposed {
			require.NotSame(f.t, &b[0], &r.Buf[0])
		}
		for _, m := range f.moves {
			require.NotSame(f.t, &m.b[0], &r.Buf[0])
		}
	}
	for _, p := range f.core.peers.All() {
		require.LessOrEqual(f.t, len(p.early), MaxEarly)
		require.LessOrEqual(f.t, p.earlyBytes, MaxEarlyBytes)
		require.GreaterOrEqual(f.t, p.unexpectedBytes, 0)
		require.False(f.t, p.err != nil && (p.queue.Len() > 0 || len(p.early) > 0))
	}
	require.Zero(f.t, f.core.depth)
	require.Empty(f.t, f.core.deferred)
}

// FuzzCore checks for any packets and calls that nothing panics, that buffered data is bounded,
// that memory of completed requests is not accessed, and that no request waits when all ranks are
// lost.
func FuzzCore(f *testing.F) {
	f.Add([]byte{0, 9, 1, 100, 0, 0, 0, 1, 0, 0, 0, 0, 0, 50, 0})
	f.Add([]byte{1, 8, 1, 0, 200, 0, 0, 0, 3, 2, 1, 0, 150, 0, 0, 13, 0, 12, 1, 1, 1, 0})
	f.Add([]byte{1, 9, 2, 200, 0, 0, 0, 2, 2, 0, 0, 180, 0, 9, 0, 0, 0, 4, 0, 0, 0, 0, 0, 100})
	f.Add([]byte{0, 15, 1, 20, 0, 1, 13, 0, 10, 0, 0, 0, 14, 3, 1, 9})
	f.Fuzz(func(t *testing.T, b []byte) {
		s := script(b)
		v := &fuzzed{evil: newEvil(t, Scheme(s.byte()%3)), back: make(map[*Request][]byte)}
		v.quiet = true
		v.limits.Eager = 60
		v.core.throttleWatermark, v.core.maxUnexpectedBytes = 2000, 20_000
		for len(s) > 0 {
			v.step(&s)
			v.check()
		}
		for rank := 1; rank < 4; rank++ {
			v.core.FailPeer(rank, errors.New("cut"))
		}
		for _, m := range v.moves {
			v.core.TransferDone(m.id, errors.New("flushed"))
		}
		v.moves = nil
		v.check()
		require.Empty(t, v.exposed)
		_, _, underway := v.core.Pending()
		require.Zero(t, underway)
		for _, r := range v.requests {
			alone := r.state == stateUnmatched && (r.Envelope.Source == 0 || r.Dest == 0) // within rank 0
			require.True(t, r.Done || alone, "%+v", r)
		}
	})
}
