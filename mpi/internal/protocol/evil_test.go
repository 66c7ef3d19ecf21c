package protocol

import (
	"bytes"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// evil is the other ranks, and what leads to them, of a core of rank 0 among 4. It says
// what it likes, and does with memory what it is told.
type evil struct {
	t       require.TestingT
	core    *Core
	limits  Limits
	full    bool  // there is no room
	fault   error // of what is done with memory
	sent    []packetOut
	moves   []moveOut
	exposed map[int][]byte // and not hidden
	key     int
	seq     [4]uint32
	quiet   bool // sent is not kept
}

type packetOut struct {
	to      int
	h       envelope.Header
	payload []byte
}

type moveOut struct {
	to    int
	b     []byte
	key   envelope.Key
	id    uint64
	store bool
}

// newEvil is with a core whose packets have room for 100 bytes.
func newEvil(t require.TestingT, s Scheme) *evil {
	e := &evil{t: t, core: New(0, 4), limits: Limits{Eager: 100, Rendezvous: s}, exposed: make(map[int][]byte)}
	e.core.Attach(e)
	return e
}

func (e *evil) Limits(int) Limits { return e.limits }

func (e *evil) Send(rank int, h *envelope.Header, payload []byte) bool {
	if len(payload) > e.limits.Eager || int(h.Bytes) != len(payload) {
		require.Fail(e.t, "payload", "%d bytes in %+v", len(payload), *h)
	}
	if !e.full && !e.quiet {
		e.sent = append(e.sent, packetOut{rank, *h, bytes.Clone(payload)})
	}
	return !e.full
}

func (e *evil) RegisterMemory(rank int, b []byte, write bool) (envelope.Key, Registration, error) {
	if e.fault != nil {
		return envelope.Key{}, nil, e.fault
	}
	e.key++
	e.exposed[e.key] = b
	return envelope.Key{Addr: 0x1000, RKey: uint32(e.key)}, e.key, nil
}

func (e *evil) DeregisterMemory(x Registration) {
	require.Contains(e.t, e.exposed, x)
	delete(e.exposed, x.(int))
}

func (e *evil) RDMARead(rank int, b []byte, key envelope.Key, id uint64) error {
	return e.move(moveOut{rank, b, key, id, false})
}

func (e *evil) RDMAWrite(rank int, b []byte, key envelope.Key, id uint64) error {
	return e.move(moveOut{rank, b, key, id, true})
}

func (e *evil) move(m moveOut) error {
	if e.full {
		return ErrNoRoom
	}
	if e.fault == nil {
		e.moves = append(e.moves, m)
	}
	return e.fault
}

// last is the last packet of the core.
func (e *evil) last() packetOut {
	require.NotEmpty(e.t, e.sent)
	return e.sent[len(e.sent)-1]
}

// raw says something: what a header cannot say has been found before it comes to
// a core.
func (e *evil) raw(from int, h envelope.Header, payload ...byte) error {
	b := make([]byte, envelope.Size)
	h.MarshalTo(b)
	require.NoError(e.t, h.Unmarshal(b))
	return e.core.HandlePacket(from, &h, payload)
}

// say says something in order, as rank 1.
func (e *evil) say(h envelope.Header, payload ...byte) error { return e.as(1, h, payload...) }

func (e *evil) as(from int, h envelope.Header, payload ...byte) error {
	h.Source, h.Bytes = uint32(from), uint32(len(payload))
	if h.Kind == envelope.Eager {
		h.Length = uint64(len(payload))
	}
	if h.Kind.Ordered() && h.Seq == 0 {
		h.Seq = e.seq[from]
		e.seq[from]++
	}
	return e.raw(from, h, payload...)
}

// send begins a send of n bytes to rank 1, and says what it is known by.
func (e *evil) send(n int, sync bool) (*Request, uint64) {
	r := &Request{Dest: 1, Buf: make([]byte, n), Sync: sync}
	e.core.Send(r)
	return r, r.id
}

// receive begins a receive of n bytes from rank 1.
func (e *evil) receive(n int) *Request {
	r := &Request{Envelope: match.Envelope{Source: 1}, Buf: make([]byte, n)}
	e.core.Receive(r)
	return r
}

// key is the payload of Clear: our request.
func key(id uint64) []byte {
	b := make([]byte, envelope.KeySize)
	(&envelope.Key{Addr: 9, RKey: 9, ID: id}).MarshalTo(b)
	return b
}

var (
	eager = envelope.Header{Kind: envelope.Eager}
	hers  = uint64(0xcafe) // what rank 1 knows its requests by
)

// announce is Ready for n bytes.
func (e *evil) announce(s Scheme, n int) error {
	h := envelope.Header{Kind: envelope.RTS, Length: uint64(n), ID: hers}
	switch s {
	case RendezvousRead:
		return e.say(h, key(0)...)
	case RendezvousWrite:
		h.Flags = envelope.ByWrite
	case RendezvousCopy:
		h.Flags = envelope.ByCopy
	}
	return e.say(h)
}

// asked is what the core's Clear has for a key.
func (e *evil) asked() (k envelope.Key) {
	p := e.last()
	require.Equal(e.t, envelope.CTS, p.h.Kind)
	require.NoError(e.t, k.Unmarshal(p.payload))
	return k
}

func clearFor(id uint64, n int) envelope.Header {
	return envelope.Header{Kind: envelope.CTS, ID: id, Length: uint64(n)}
}

func about(k envelope.Kind, id uint64) envelope.Header { return envelope.Header{Kind: k, ID: id} }

func part(id uint64, at int) envelope.Header {
	return envelope.Header{Kind: envelope.Data, ID: id, Length: uint64(at)}
}
