package protocol

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// TestThrottleOfReceiver checks that a rank with too many unexpected messages is throttled, that
// is, has to announce its messages until they are received.
func TestThrottleOfReceiver(t *testing.T) {
	e := newEvil(t, RendezvousRead)
	e.core.throttleWatermark = 4 * (messageOverhead + 100)
	for range 4 {
		require.NoError(t, e.handleFrom1(eager, make([]byte, 100)...))
	}
	require.Empty(t, e.sent)
	e.full = true
	require.NoError(t, e.handleFrom1(eager, make([]byte, 100)...))
	e.full = false
	e.core.Resume(1)
	require.Equal(t, packetOut{1, envelope.Header{Kind: envelope.Throttle, Length: 1, Seq: 1}, nil}, e.last())
	for range 3 {
		require.True(t, e.receive(100).Done)
		require.Len(t, e.sent, 1)
	}
	require.True(t, e.receive(100).Done)
	require.Equal(t, packetOut{1, envelope.Header{Kind: envelope.Throttle, Seq: 2}, nil}, e.last())
	require.EqualValues(t, 1, e.core.Stats.Throttled)
}

// TestThrottleOfSender checks that a throttled sender announces short messages too, and also those
// that are queued.
func TestThrottleOfSender(t *testing.T) {
	e := newEvil(t, RendezvousRead)
	e.full = true
	waits, _ := e.send(5, false)
	e.full = false
	throttle := func(on uint64, seq uint32) {
		require.NoError(t, e.handleFrom1(envelope.Header{Kind: envelope.Throttle, Length: on, Seq: seq}))
	}
	throttle(1, 7)
	throttle(0, 6) // older
	empty, _ := e.send(0, false)
	e.core.Resume(1)
	for i, r := range []*Request{waits, empty} {
		p := e.sent[i]
		require.Equal(t, []any{envelope.RTS, envelope.ByCopy, uint32(i)}, []any{p.h.Kind, p.h.Flags, p.h.Seq})
		require.False(t, r.Done)
		require.NoError(t, e.handleFrom1(clearFor(p.h.ID, len(r.Buf)), keyOf(hers)...))
		require.True(t, r.Done)
		require.NoError(t, r.Err)
	}
	require.Equal(t, envelope.Data, e.last().h.Kind)
	require.Empty(t, e.exposed, "it is not worth it")
	throttle(0, 8)
	done, _ := e.send(5, false)
	require.True(t, done.Done)
	require.Equal(t, envelope.Eager, e.last().h.Kind)
}

// TestFlood checks that a rank that ignores the throttle causes an error, on which it must be
// failed.
func TestFlood(t *testing.T) {
	e := newEvil(t, RendezvousRead)
	e.core.maxUnexpectedBytes = 1000
	var err error
	n := 0
	for ; err == nil; n++ {
		err = e.handleFrom1(eager, make([]byte, 50)...)
	}
	require.ErrorIs(t, err, ErrUnexpectedLimit)
	require.Equal(t, 1000/(messageOverhead+50)+1, n)
	e = newEvil(t, RendezvousRead)
	e.core.maxUnexpectedBytes = 1000
	for n = 0; n < 3; n++ {
		require.NoError(t, e.announce(RendezvousCopy, 1<<20))
	}
	require.ErrorIs(t, e.announce(RendezvousCopy, 1<<20), ErrUnexpectedLimit)

	for range 100 { // a rank may send to itself without a limit
		e.core.Send(&Request{Dest: 0, Buf: make([]byte, 100)})
	}
}

// TestOutOfOrderIsBounded checks that packets that arrive out of order are limited in number and bytes,
// and are released.
func TestOutOfOrderIsBounded(t *testing.T) {
	e := newEvil(t, RendezvousRead)
	p := e.core.peers.Get(1)
	for i := uint32(MaxEarly); i > 0; i-- {
		require.NoError(t, e.handle(1, envelope.Header{Kind: envelope.Eager, Source: 1, Length: 9, Bytes: 9, Seq: i}, make([]byte, 9)...))
	}
	require.Len(t, p.early, MaxEarly)
	require.Equal(t, 9*MaxEarly, p.earlyBytes)
	require.NoError(t, e.handle(1, envelope.Header{Kind: envelope.Active, Source: 1}))
	require.Empty(t, p.early)
	require.Zero(t, p.earlyBytes)
	_, messages, _ := e.core.Pending()
	require.Equal(t, MaxEarly, messages)
	require.LessOrEqual(t, len(e.core.free), maxFreeMessages)

	require.NoError(t, e.handle(1, envelope.Header{Kind: envelope.Active, Source: 1, Seq: p.recvSeq + 3}))
	e.core.FailPeer(1, errors.New("cut"))
	require.Empty(t, p.early)
}

// TestRepacked checks that a message is sent in packets if its memory cannot be registered.
func TestRepacked(t *testing.T) {
	data := make([]byte, 150)
	for i := range data {
		data[i] = byte(i)
	}
	no := errors.New("no registration left")
	fills := func(e *evil, r *Request) {
		require.Zero(t, e.last().h.Flags)
		id := e.lastCTS().ID
		require.NoError(t, e.handleFrom1(dataHeader(id, 0), data[:100]...))
		require.NoError(t, e.handleFrom1(dataHeader(id, 100), data[100:]...))
		require.True(t, r.Done)
		require.Equal(t, data, r.Buf)
	}
	for _, s := range []Scheme{RendezvousRead, RendezvousWrite} { // at the receiver
		e := newEvil(t, s)
		e.fault = no
		r := e.receive(150)
		require.NoError(t, e.announce(s, 150))
		fills(e, r)
		require.EqualValues(t, 1, e.core.Stats.Repacked)
	}
	e := newEvil(t, RendezvousRead) // at the sender, who has announced it for an RDMA READ
	e.fault = no
	r := &Request{Dest: 1, Buf: data}
	e.core.Send(r)
	require.Equal(t, envelope.ByCopy, e.last().h.Flags)
	require.NoError(t, e.handleFrom1(clearFor(r.id, 150), keyOf(hers)...))
	require.True(t, r.Done)
	require.Equal(t, data, append(e.sent[1].payload, e.sent[2].payload...))

	e = newEvil(t, RendezvousWrite) // or an RDMA WRITE, which fails when the first half can leave
	r = &Request{Dest: 1, Buf: data}
	e.core.Send(r)
	e.full = true
	h := clearFor(r.id, 150)
	h.Flags = envelope.ByWrite
	require.NoError(t, e.handleFrom1(h, keyOf(hers)...))
	e.full, e.fault = false, no
	e.core.Resume(1)
	require.True(t, r.Done)
	require.Equal(t, data, append(e.sent[1].payload, e.sent[2].payload...))
	require.Equal(t, []uint64{hers, hers}, []uint64{e.sent[1].h.ID, e.sent[2].h.ID})

	put := &Request{Dest: 1, Buf: data} // there is no other transport for it
	e.core.Put(put, envelope.Key{})
	require.ErrorIs(t, put.Err, no)
}

// TestLongMessageLetsOthersPass checks that short messages overtake a long message in packets.
func TestLongMessageLetsOthersPass(t *testing.T) {
	e := newEvil(t, RendezvousCopy)
	long, id := e.send(1000, false)
	room := 3
	e.core.Attach(limited{e, &room})
	require.NoError(t, e.handleFrom1(clearFor(id, 1000), keyOf(hers)...))
	require.Len(t, e.sent, 4) // RTS and three packets
	short, _ := e.send(5, false)
	require.Equal(t, 2, e.core.Backlog(1))
	room = 2
	e.core.Resume(1) // two more packets
	require.False(t, short.Done)
	room = 2
	e.core.Resume(1)
	require.True(t, short.Done)
	require.Equal(t, envelope.Eager, e.sent[6].h.Kind)
	room = 100
	e.core.Resume(1)
	require.True(t, long.Done)
}

// limited accepts a limited number of packets.
type limited struct {
	*evil
	room *int
}

func (l limited) Send(rank int, h *envelope.Header, payload []byte) bool {
	*l.room--
	return *l.room >= 0 && l.evil.Send(rank, h, payload)
}

// TestWorkedExample is the worked example of docs/mpi-protocol.md: the packet that arrives first is
// not matched first.
func TestWorkedExample(t *testing.T) {
	e := newEvil(t, RendezvousRead)
	require.NoError(t, e.handle(1, envelope.Header{Kind: envelope.Eager, Source: 1, Tag: 2, Length: 8, Bytes: 8, Seq: 1}, make([]byte, 8)...))
	require.EqualValues(t, 1, e.core.Stats.Early)
	r := &Request{Envelope: match.Envelope{Source: match.Any, Tag: match.Any}, Buf: make([]byte, 30_000)}
	e.core.Receive(r)
	require.NoError(t, e.handle(1, envelope.Header{Kind: envelope.RTS, Source: 1, Tag: 1, Length: 30_000, ID: 1 << 32, Bytes: envelope.KeySize}, keyOf(0)...))
	require.EqualValues(t, 1, e.core.Stats.Unexpected)
	require.Len(t, e.moves, 1)
	require.Equal(t, []any{30_000, uint64(1 << 32)}, []any{len(e.moves[0].b), e.moves[0].id})
	require.Empty(t, e.sent)
	e.core.TransferDone(e.moves[0].id, nil)
	require.Equal(t, packetOut{1, headerOf(envelope.FIN, 1<<32), nil}, e.last())
	require.Equal(t, match.Envelope{Source: 1, Tag: 1}, r.Received)
	require.True(t, r.Done)
	require.NotNil(t, e.core.Probe(match.Envelope{Source: 1, Tag: 2}, false))
}

// TestActive checks that active packets, and replies to them, are handled in order with messages.
func TestActive(t *testing.T) {
	e := newEvil(t, RendezvousCopy)
	var order []string
	e.core.Handler = func(from int, h *envelope.Header, payload []byte) error {
		order = append(order, string(payload))
		if from != 0 {
			return e.core.SendActive(from, envelope.Header{Tag: 3}, []byte("answer"))
		}
		return nil
	}
	early := func(kind envelope.Kind, seq uint32, s string) {
		require.NoError(t, e.handle(1, envelope.Header{Kind: kind, Source: 1, Seq: seq, Length: uint64(len(s)), Bytes: uint32(len(s))}, []byte(s)...))
	}
	early(envelope.Active, 2, "second")
	early(envelope.Eager, 1, "message")
	require.Nil(t, e.core.Probe(match.Envelope{Source: 1}, false))
	early(envelope.Active, 0, "first")
	require.Equal(t, []string{"first", "second"}, order)
	require.NotNil(t, e.core.Probe(match.Envelope{Source: 1}, false))
	require.Len(t, e.sent, 2)
	require.Equal(t, envelope.Header{Kind: envelope.Active, Tag: 3, Bytes: 6, Seq: 1}, e.last().h)

	payload := []byte("mine")
	e.full = true
	require.NoError(t, e.core.SendActive(1, envelope.Header{}, payload))
	copy(payload, "ours")
	e.full = false
	e.core.Resume(1)
	require.Equal(t, "mine", string(e.last().payload))

	require.NoError(t, e.core.SendActive(1, envelope.Header{}, make([]byte, 100)))
	seq := e.last().h.Seq
	require.ErrorIs(t, e.core.SendActive(1, envelope.Header{}, make([]byte, 101)), ErrTooLong)
	require.NoError(t, e.core.SendActive(1, envelope.Header{}, nil))
	require.Equal(t, seq+1, e.last().h.Seq, "what was too long has no number")
	require.NoError(t, e.core.SendActive(0, envelope.Header{}, []byte("to ourselves")))
	require.Equal(t, "to ourselves", order[2])
}
