package protocol

import (
	"bytes"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// evil simulates the other ranks, and the net to them, for the core of rank 0 of 4. It sends any
// packets, and transfers memory as the core requests.
type evil struct {
	t       require.TestingT
	core    *Core
	limits  Limits
	full    bool  // the net accepts nothing
	fault   error // returned for all memory
	sent    []packetOut
	moves   []moveOut
	exposed map[int][]byte // registered memory
	key     int
	seq     [4]uint32
	quiet   bool // sent is not recorded
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

// newEvil returns the ranks and a core whose packets have up to 100 bytes.
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

// last returns the last packet of the core.
func (e *evil) last() packetOut {
	require.NotEmpty(e.t, e.sent)
	return e.sent[len(e.sent)-1]
}

// handle passes a packet to the core. Only valid headers reach a core.
func (e *evil) handle(from int, h envelope.Header, payload ...byte) error {
	b := make([]byte, envelope.Size)
	h.MarshalTo(b)
	require.NoError(e.t, h.Unmarshal(b))
	return e.core.HandlePacket(from, &h, payload)
}

// handleFrom1 passes a packet of rank 1, with the next sequence number.
func (e *evil) handleFrom1(h envelope.Header, payload ...byte) error {
	return e.handleFrom(1, h, payload...)
}

func (e *evil) handleFrom(from int, h envelope.Header, payload ...byte) error {
	h.Source, h.Bytes = uint32(from), uint32(len(payload))
	if h.Kind == envelope.Eager {
		h.Length = uint64(len(payload))
	}
	if h.Kind.Ordered() && h.Seq == 0 {
		h.Seq = e.seq[from]
		e.seq[from]++
	}
	return e.handle(from, h, payload...)
}

// send starts a send of n bytes to rank 1, and returns the request and its id.
func (e *evil) send(n int, sync bool) (*Request, uint64) {
	r := &Request{Dest: 1, Buf: make([]byte, n), Sync: sync}
	e.core.Send(r)
	return r, r.id
}

// receive starts a receive of n bytes from rank 1.
func (e *evil) receive(n int) *Request {
	r := &Request{Envelope: match.Envelope{Source: 1}, Buf: make([]byte, n)}
	e.core.Receive(r)
	return r
}

// keyOf returns the payload of a CTS with the id of a request of rank 1.
func keyOf(id uint64) []byte {
	b := make([]byte, envelope.KeySize)
	(&envelope.Key{Addr: 9, RKey: 9, ID: id}).MarshalTo(b)
	return b
}

var (
	eager = envelope.Header{Kind: envelope.Eager}
	hers  = uint64(0xcafe) // the id of all requests of rank 1
)

// announce passes the RTS of a message of n bytes.
func (e *evil) announce(s Scheme, n int) error {
	h := envelope.Header{Kind: envelope.RTS, Length: uint64(n), ID: hers}
	switch s {
	case RendezvousRead:
		return e.handleFrom1(h, keyOf(0)...)
	case RendezvousWrite:
		h.Flags = envelope.ByWrite
	case RendezvousCopy:
		h.Flags = envelope.ByCopy
	}
	return e.handleFrom1(h)
}

// lastCTS returns the key of the core's CTS.
func (e *evil) lastCTS() (k envelope.Key) {
	p := e.last()
	require.Equal(e.t, envelope.CTS, p.h.Kind)
	require.NoError(e.t, k.Unmarshal(p.payload))
	return k
}

func clearFor(id uint64, n int) envelope.Header {
	return envelope.Header{Kind: envelope.CTS, ID: id, Length: uint64(n)}
}

func headerOf(k envelope.Kind, id uint64) envelope.Header { return envelope.Header{Kind: k, ID: id} }

func dataHeader(id uint64, at int) envelope.Header {
	return envelope.Header{Kind: envelope.Data, ID: id, Length: uint64(at)}
}
