package rdm

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/nack"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// target is an endpoint with a peer that consists of its messages only.
func target(t testing.TB) (*Endpoint, *Peer, *Region) {
	open := func() *Endpoint {
		dev, err := rnic.Open(rnic.Options{})
		require.NoError(t, err)
		e, err := Open(dev, Options{Service: ServeCalls, Emulate: true, Receives: 16, Packets: 64})
		require.NoError(t, err)
		t.Cleanup(func() {
			require.NoError(t, e.Close())
			require.NoError(t, dev.Close())
		})
		return e
	}
	e, other := open(), open()
	r, err := e.Register(make([]byte, 256), verbs.AccessLocalWrite|verbs.AccessRemoteWrite|verbs.AccessRemoteRead)
	require.NoError(t, err)
	e.mu.Lock()
	defer e.mu.Unlock()
	p, err := e.addPeer(other.addr, verbs.AccessRemote)
	require.NoError(t, err)
	e.markConnected(p)
	return e, p, r
}

// TestBreaches checks that malformed messages fail their peer, and are counted.
func TestBreaches(t *testing.T) {
	message := func(r opMessage, payload ...byte) []byte {
		var b [headSize]byte
		return append(b[:r.encode(&b)], payload...)
	}
	for what, b := range map[string][]byte{
		"empty":                 {},
		"short":                 {tagRead, 0, 0, 0},
		"unknown":               message(opMessage{tag: 'x'}),
		"reserved bits":         func() []byte { b := message(opMessage{tag: tagRead}); b[3] = 1; return b }(),
		"operands cut":          message(opMessage{tag: tagSwap})[:39],
		"too long a read":       message(opMessage{tag: tagRead, n: 1<<31 + 1}),
		"length of a write":     message(opMessage{tag: tagWrite, n: 5}, 1, 2, 3),
		"a write of nothing":    message(opMessage{tag: tagWrite}),
		"data of nothing":       message(opMessage{tag: tagData, n: 1, id: 77}, 1),
		"the end of nothing":    message(opMessage{tag: tagEnd, id: 1 << 16}),
		"an answer to no token": message(opMessage{tag: tagToken, status: 1, a: 5}),
	} {
		e, p, _ := target(t)
		e.mu.Lock()
		e.sender = p
		e.handleMessage(b)
		require.ErrorIs(t, p.err, ErrProtocol, what)
		require.EqualValues(t, 1, e.stats.Malformed, what)
		e.mu.Unlock()
	}
}

// TestFloodOfRequests checks that replies to a peer that does not receive them are bounded, and
// that it is disconnected if it continues to send requests.
func TestFloodOfRequests(t *testing.T) {
	for what, ask := range map[string]opMessage{
		"reads":  {tag: tagRead, n: 256},
		"tokens": {tag: tagToken, a: 5},
	} {
		t.Run(what, func(t *testing.T) {
			e, p, r := target(t)
			e.mu.Lock()
			defer e.mu.Unlock()
			e.dispatching = true // no packet is sent
			ask.addr, ask.rkey = r.mr.Addr(), r.mr.RKey()
			var b [headSize]byte
			n := ask.encode(&b)
			asked := 0
			for ; p.err == nil && asked < 10_000; asked++ {
				e.sender = p
				e.handleMessage(b[:n])
			}
			require.ErrorIs(t, p.err, ErrProtocol)
			require.Less(t, asked, 300)
		})
	}
}

// TestRepliesAhead checks that a reply to an operation that was not sent, or not completely, is a
// violation and completes the operation once: numbers of operations can be guessed.
func TestRepliesAhead(t *testing.T) {
	for what, span := range map[string]int{"one that waits": 8, "a write that has left in part": 1 << 20} {
		t.Run(what, func(t *testing.T) {
			e, p, _ := target(t)
			r, err := e.Register(make([]byte, 1<<20), verbs.AccessLocalWrite)
			require.NoError(t, err)
			var first, op Op
			require.NoError(t, p.Write(&first, r.At(0, 1<<20), Remote{})) // more than fit
			if span == 8 {
				require.NoError(t, p.Write(&op, r.At(0, span), Remote{}))
			}
			victim := &first
			if span == 8 {
				victim = &op
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			var b [headSize]byte
			n := (&opMessage{tag: tagEnd, id: victim.id}).encode(&b)
			e.sender = p
			e.handleMessage(b[:n])
			require.ErrorIs(t, p.err, ErrProtocol)
			require.ErrorIs(t, victim.Err(), ErrProtocol)
			require.Zero(t, p.rdmaState.outstanding)
			require.Zero(t, r.busy)
			require.Len(t, e.ops.free, len(e.ops.slots)) // each slot is free, once
		})
	}
}

// TestEventsOfFormerIncarnation checks that events of an ended incarnation are not handled for the next
// one, which has the same number.
func TestEventsOfFormerIncarnation(t *testing.T) {
	e, p, _ := target(t)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dispatching = true // all arrive in one poll
	later, number := p.at, p.number
	later.Epoch++
	packet := make([]byte, nack.FeedbackSize)
	n := (&nack.Header{Kind: nack.Hello, Epoch: later.Epoch}).Put(packet)
	require.Equal(t, nack.DropNone, e.core.HandlePacket(e.port.Now(), number, packet[:n], e.deliver))
	var frame [handshakeSize]byte
	copy(frame[:], handshakeMagic)
	frame[4] = helloFrame
	later.encode(frame[12:])
	e.handleHandshake(incarnationOf(&p.at), frame[:])
	e.dispatchAndFlush()
	require.ErrorIs(t, p.err, ErrRestarted)
	next := e.byIncarnation[incarnationOf(&later)]
	require.NotNil(t, next)
	require.Equal(t, number, next.number)
	require.NoError(t, next.err)
}

// FuzzRequests checks that arbitrary messages of a peer write only where permitted.
func FuzzRequests(f *testing.F) {
	f.Add([]byte{tagRead, 0, 0, 0, 1})
	f.Add([]byte{tagWrite, 1, 0, 0, 1, 2, 3, 4})
	e, _, r := target(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		e.mu.Lock()
		defer e.mu.Unlock()
		p := &Peer{e: e, at: e.addr, state: open, access: verbs.AccessRemote}
		p.number = len(e.peers)
		e.peers = append(e.peers, p)
		e.core.RemovePeer(p.number) // no packet is sent to it
		e.dispatching = true
		private := make([]byte, 64)
		closed, err := e.port.PD.RegMR(private, verbs.AccessLocalWrite)
		require.NoError(t, err)
		for len(in) > 0 && p.err == nil {
			n := min(int(in[0]), len(in)-1)
			b := append([]byte(nil), in[1:1+n]...)
			in = in[1+n:]
			if len(b) >= shortSize && b[1]&2 != 0 { // a request with a valid key
				b[1] &= 1
				binary.BigEndian.PutUint32(b[8:], []uint32{r.mr.RKey(), closed.LKey()}[b[7]&1])
				binary.BigEndian.PutUint64(b[16:], r.mr.Addr()+uint64(b[23]))
			}
			e.sender = p
			e.handleMessage(b)
			require.Equal(t, make([]byte, 64), private)
			require.LessOrEqual(t, len(e.ops.slots)-len(e.ops.free), 0)
		}
		require.NoError(t, closed.Close())
		if p.err == nil {
			e.failPeer(p, ErrDisconnected)
		}
		for e.inbox.front() != nil {
			e.inbox.pop()
		}
		e.free = e.free[:0]
		e.peers = e.peers[:p.number]
		e.dispatching = false
	})
}
