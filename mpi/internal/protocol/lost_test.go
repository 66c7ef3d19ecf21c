package protocol

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// TestLost checks a request in each state when its rank is lost. The net keeps the memory of its
// transfers.
func TestLost(t *testing.T) {
	place := func(e *evil, r *Request, id uint64) *Request {
		h := clearFor(id, 500)
		h.Flags = envelope.ByWrite
		require.NoError(e.t, e.handleFrom1(h, keyOf(hers)...))
		return r
	}
	first := func(r *Request, _ uint64) *Request { return r }
	announced := func(e *evil, s Scheme) *Request {
		r := e.receive(150)
		require.NoError(e.t, e.announce(s, 150))
		return r
	}
	for _, c := range []struct {
		name   string
		as     Scheme
		do     func(e *evil) *Request
		moving bool
	}{
		{"an eager send that waits for room", RendezvousCopy, func(e *evil) *Request { e.full = true; return first(e.send(5, false)) }, false},
		{"a synchronous one", RendezvousCopy, func(e *evil) *Request { e.full = true; return first(e.send(5, true)) }, false},
		{"a send for MATCHED", RendezvousCopy, func(e *evil) *Request { return first(e.send(5, true)) }, false},
		{"an announcement that waits for room", RendezvousRead, func(e *evil) *Request { e.full = true; return first(e.send(500, false)) }, false},
		{"a send for FIN", RendezvousRead, func(e *evil) *Request { return first(e.send(500, false)) }, false},
		{"a send for CTS", RendezvousWrite, func(e *evil) *Request { return first(e.send(500, false)) }, false},
		{"a send that waits for room to store", RendezvousWrite, func(e *evil) *Request {
			r, id := e.send(500, false)
			e.full = true
			return place(e, r, id)
		}, false},
		{"a send that stores", RendezvousWrite, func(e *evil) *Request { r, id := e.send(500, false); return place(e, r, id) }, true},
		{"a send in packets", RendezvousCopy, func(e *evil) *Request {
			r, id := e.send(500, false)
			e.full = true
			require.NoError(e.t, e.handleFrom1(clearFor(id, 500), keyOf(hers)...))
			return r
		}, false},
		{"a receive", RendezvousCopy, func(e *evil) *Request { return e.receive(5) }, false},
		{"a receive from any rank", RendezvousCopy, func(e *evil) *Request {
			r := &Request{Envelope: match.Envelope{Source: match.Any, Tag: match.Any}, Sources: []int{3, 1}}
			e.core.Receive(r)
			return r
		}, false},
		{"a receive that waits for room to fetch", RendezvousCopy, func(e *evil) *Request { e.full = true; return announced(e, RendezvousRead) }, false},
		{"a receive that fetches", RendezvousCopy, func(e *evil) *Request { return announced(e, RendezvousRead) }, true},
		{"a receive that waits for room to ask", RendezvousCopy, func(e *evil) *Request { e.full = true; return announced(e, RendezvousWrite) }, false},
		{"a receive for FIN", RendezvousCopy, func(e *evil) *Request { return announced(e, RendezvousWrite) }, false},
		{"a receive for DATA", RendezvousCopy, func(e *evil) *Request { return announced(e, RendezvousCopy) }, false},
		{"a put that waits for room", RendezvousCopy, func(e *evil) *Request {
			e.full = true
			r := &Request{Dest: 1, Buf: make([]byte, 9)}
			e.core.Put(r, envelope.Key{})
			return r
		}, false},
		{"a get", RendezvousCopy, func(e *evil) *Request {
			r := &Request{Dest: 1, Buf: make([]byte, 9)}
			e.core.Get(r, envelope.Key{})
			return r
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEvil(t, c.as)
			r := c.do(e)
			require.False(t, r.Done)
			bystander := &Request{Envelope: match.Envelope{Source: match.Any, Tag: match.Any}, Sources: []int{0, 2, 3}}
			e.core.Receive(bystander)
			e.core.FailPeer(1, errors.New("cut"))
			if c.moving {
				require.False(t, r.Done, "the net has its memory")
				e.core.TransferDone(e.moves[0].id, errors.New("flushed"))
			}
			require.True(t, r.Done)
			require.ErrorIs(t, r.Err, ErrLost)
			require.ErrorContains(t, r.Err, "rank 1 is lost: cut")
			require.Zero(t, r.Bytes)
			require.Empty(t, e.exposed)
			require.False(t, bystander.Done)
			require.True(t, e.core.Cancel(bystander))
			require.Zero(t, e.core.Backlog(1))
			_, _, underway := e.core.Pending()
			require.Zero(t, underway)

			// Later requests fail at once.
			require.ErrorIs(t, e.core.PeerError(1), ErrLost)
			r, _ = e.send(5, false)
			require.ErrorIs(t, r.Err, ErrLost)
			require.ErrorIs(t, e.receive(5).Err, ErrLost)
			require.ErrorIs(t, e.core.SendActive(1, envelope.Header{}, nil), ErrLost)
			empty := &Request{Dest: 1}
			e.core.Put(empty, envelope.Key{})
			require.ErrorIs(t, empty.Err, ErrLost)
			e.core.FailPeer(1, errors.New("again"))
			e.core.Resume(1)
			require.ErrorContains(t, e.core.PeerError(1), "cut")
		})
	}
}

// TestMessagesOfLostRank checks that a complete message remains when its sender is lost, and an
// announced one does not.
func TestMessagesOfLostRank(t *testing.T) {
	e := newEvil(t, RendezvousCopy)
	require.NoError(t, e.handleFrom1(eager, 1))
	require.NoError(t, e.announce(RendezvousRead, 500))
	require.NoError(t, e.announce(RendezvousCopy, 500))
	any := match.Envelope{Source: match.Any, Tag: match.Any}
	taken := e.core.Probe(match.Envelope{Source: 1}, false)
	require.EqualValues(t, 1, taken.Length)
	require.NoError(t, e.handleFrom1(envelope.Header{Kind: envelope.RTS, Flags: envelope.ByCopy, Tag: 5, Length: 300}))
	taken = e.core.Probe(match.Envelope{Source: 1, Tag: 5}, true)
	e.core.FailPeer(1, errors.New("cut"))

	r := &Request{Envelope: any, Buf: make([]byte, 1)}
	require.Nil(t, e.core.SourceError(match.Envelope{Source: 2}, nil))
	e.core.Receive(r)
	require.NoError(t, r.Err)
	require.Equal(t, []byte{1}, r.Buf)
	require.Nil(t, e.core.Probe(any, false))
	require.ErrorIs(t, e.core.SourceError(any, nil), ErrLost)
	require.NoError(t, e.core.SourceError(any, []int{0, 2}))
	r = &Request{Envelope: taken.Envelope, Buf: make([]byte, 300)}
	e.core.ReceiveMessage(r, taken)
	require.ErrorIs(t, r.Err, ErrLost)
	receives, messages, underway := e.core.Pending()
	require.Zero(t, receives+messages+underway)
	require.Zero(t, e.core.peers.Get(1).unexpectedBytes)
}

// TestTransferFails checks that a failed transfer completes its request with an error, on which the
// rank must be failed.
func TestTransferFails(t *testing.T) {
	e := newEvil(t, RendezvousWrite)
	in := e.receive(150)
	require.NoError(t, e.announce(RendezvousRead, 150))
	out, id := e.send(500, false)
	h := clearFor(id, 500)
	h.Flags = envelope.ByWrite
	require.NoError(t, e.handleFrom1(h, keyOf(hers)...))
	require.Len(t, e.moves, 2)
	for _, m := range e.moves {
		e.core.TransferDone(m.id, errors.New("remote access error"))
		e.core.TransferDone(m.id, nil) // there is no such transfer any more
	}
	for _, r := range []*Request{in, out} {
		require.True(t, r.Done)
		require.ErrorIs(t, r.Err, ErrLost)
		require.ErrorContains(t, r.Err, "rank 1 is lost: remote access error")
	}
	e.core.TransferDone(1<<32, nil)
	e.core.TransferDone(0, nil)
}

// TestFailPeerOnceSent checks that a rank that exits is failed when the last queued packet has
// left, and not before.
func TestFailPeerOnceSent(t *testing.T) {
	for _, full := range []bool{false, true} {
		e := newEvil(t, RendezvousCopy)
		sent, received := e.core.Exchanged(1)
		require.False(t, sent || received)
		e.full = full
		require.NoError(t, e.core.SendActive(1, envelope.Header{}, nil))
		sent, received = e.core.Exchanged(1)
		require.True(t, sent && !received)
		e.core.FailPeerOnceSent(1, errors.New("it ends"))
		if full {
			require.NoError(t, e.core.PeerError(1))
			e.full = false
			e.core.Resume(1)
		}
		require.ErrorContains(t, e.core.PeerError(1), "it ends")
		require.Zero(t, e.core.Backlog(1))
		require.Equal(t, envelope.Active, e.sent[len(e.sent)-1].h.Kind)
	}
}
