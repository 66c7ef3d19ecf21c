package protocol

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// TestOnDone checks that Then is called once, when the request is done, and may start another.
func TestOnDone(t *testing.T) {
	c := New(0, 1)
	var ends []string
	recv := &Request{Envelope: match.Envelope{Source: match.Any, Tag: 1}, Buf: make([]byte, 4)}
	again := &Request{Envelope: match.Envelope{Source: match.Any, Tag: 2}, Buf: make([]byte, 4)}
	recv.OnDone = func(r *Request) {
		require.Same(t, recv, r)
		require.True(t, r.Done)
		ends = append(ends, string(r.Buf[:r.Bytes]))
		c.Receive(again)
	}
	again.OnDone = func(r *Request) { ends = append(ends, string(r.Buf[:r.Bytes])) }
	c.Receive(recv)
	c.Send(&Request{Envelope: match.Envelope{Tag: 2}, Buf: []byte("two")})
	c.Send(&Request{Envelope: match.Envelope{Tag: 1}, Buf: []byte("one")})
	require.Equal(t, []string{"one", "two"}, ends)

	canceled := &Request{Envelope: match.Envelope{Source: match.Any, Tag: 3}}
	canceled.OnDone = func(r *Request) { require.ErrorIs(t, r.Err, ErrCanceled); ends = nil }
	c.Receive(canceled)
	require.True(t, c.Cancel(canceled))
	require.Nil(t, ends)
}

// TestOnPeerFailed checks that the handler of lost ranks is called after the requests of the rank
// have completed.
func TestOnPeerFailed(t *testing.T) {
	e := newEvil(t, RendezvousRead)
	var order []string
	r := &Request{Dest: 1, Buf: make([]byte, 8), OnDone: func(r *Request) { order = append(order, "request") }}
	none := 0
	e.core.Attach(limited{e, &none})
	e.core.Send(r)
	e.core.OnPeerFailed = func(rank int) {
		require.Equal(t, 1, rank)
		require.ErrorIs(t, e.core.PeerError(1), ErrLost)
		order = append(order, "gone")
	}
	require.NoError(t, e.core.SendActive(1, envelope.Header{}, nil))
	require.Equal(t, 1, e.core.ActiveBacklog(1))
	require.Equal(t, 2, e.core.Backlog(1))
	e.core.FailPeer(1, errGone)
	e.core.FailPeer(1, errGone)
	require.ErrorIs(t, r.Err, ErrLost)
	require.Equal(t, []string{"request", "gone"}, order)
	require.Zero(t, e.core.ActiveBacklog(1))
}

// TestNoAtomics checks that a net without atomics returns an error.
func TestNoAtomics(t *testing.T) {
	e := newEvil(t, RendezvousRead)
	r := &Request{Dest: 1, Buf: make([]byte, 8)}
	e.core.Atomic(r, envelope.Key{}, Atomic{Operand: 1})
	require.True(t, r.Done)
	require.ErrorContains(t, r.Err, "unsupported")
}

// TestNotifications checks that an unexpected notification is a protocol violation, and that one of a
// lost rank is ignored.
func TestNotifications(t *testing.T) {
	e := newEvil(t, RendezvousRead)
	require.ErrorIs(t, e.core.HandleNotify(1, 7), ErrProtocol)
	why := errors.New("not due")
	var heard []uint32
	e.core.OnNotify = func(from int, notice uint32) error {
		require.Equal(t, 1, from)
		if heard = append(heard, notice); notice == 8 {
			return why
		}
		return nil
	}
	require.NoError(t, e.core.HandleNotify(1, 7))
	err := e.core.HandleNotify(1, 8)
	require.ErrorIs(t, err, ErrProtocol)
	require.ErrorIs(t, err, why)
	e.core.FailPeer(1, errGone)
	require.NoError(t, e.core.HandleNotify(1, 9))
	require.Equal(t, []uint32{7, 8}, heard)

	// A net without notifications.
	for _, r := range []*Request{{Dest: 1, Buf: make([]byte, 8)}, {Dest: 1}} {
		e.core.PutNotify(r, r.key, 1)
		require.ErrorIs(t, r.Err, errors.ErrUnsupported)
	}
}
