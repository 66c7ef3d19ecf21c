package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// traffic repeats the common operations of a rank.
var traffic = []struct {
	name string
	do   func(b *bench)
}{
	{"send 8", func(b *bench) { b.send(8, false) }},
	{"send 8 synchronous", func(b *bench) {
		b.send(8, true)
		b.packet(envelope.Header{Kind: envelope.Matched, ID: b.e.core.requests.slots[0].r.id})
	}},
	{"receive 8", func(b *bench) {
		b.receive()
		b.packet(envelope.Header{Kind: envelope.Eager, Length: 8, Bytes: 8})
	}},
	{"receive 8 from any", func(b *bench) {
		b.in = Request{Envelope: match.Envelope{Source: match.Any, Tag: match.Any}, Buf: b.in.Buf}
		b.e.core.Receive(&b.in)
		b.packet(envelope.Header{Kind: envelope.Eager, Length: 8, Bytes: 8})
	}},
	{"receive 8 late", func(b *bench) {
		b.packet(envelope.Header{Kind: envelope.Eager, Length: 8, Bytes: 8})
		b.receive()
	}},
	{"send 1000 stored", func(b *bench) {
		b.send(1000, false)
		id := b.e.core.requests.slots[0].r.id
		b.packet(envelope.Header{Kind: envelope.CTS, ID: id, Length: 1000, Flags: envelope.ByWrite, Bytes: envelope.KeySize})
		b.e.moves = b.e.moves[:0]
		b.e.core.TransferDone(id, nil)
	}},
	{"receive 1000 fetched", func(b *bench) {
		b.receive()
		b.packet(envelope.Header{Kind: envelope.RTS, Length: 1000, Bytes: envelope.KeySize})
		b.e.moves = b.e.moves[:0]
		b.e.core.TransferDone(b.in.id, nil)
	}},
	{"receive 100 in packets", func(b *bench) {
		b.receive()
		b.packet(envelope.Header{Kind: envelope.RTS, Length: 100, Flags: envelope.ByCopy})
		for at := range uint64(10) {
			b.packet(envelope.Header{Kind: envelope.Data, ID: b.in.id, Length: 10 * at, Bytes: 10})
		}
	}},
	{"active", func(b *bench) { _ = b.e.core.SendActive(1, envelope.Header{}, b.payload[:8]) }},
	{"stalled", func(b *bench) {
		b.e.full = true
		b.send(8, false)
		b.e.full = false
		b.e.core.Resume(1)
	}},
}

// bench drives a core without allocations of its own.
type bench struct {
	e       *evil
	out, in Request
	h       envelope.Header
	seq     uint32
	payload [1000]byte
	t       testing.TB
}

func newBench(t testing.TB) *bench {
	b := &bench{e: newEvil(t, RendezvousWrite), t: t}
	b.e.quiet = true
	b.in.Buf, b.out.Buf = make([]byte, 1000), make([]byte, 1000)
	return b
}

func (b *bench) send(n int, sync bool) {
	b.out = Request{Dest: 1, Buf: b.out.Buf[:n:1000], Sync: sync}
	b.e.core.Send(&b.out)
}

func (b *bench) receive() {
	b.in = Request{Envelope: match.Envelope{Source: 1}, Buf: b.in.Buf}
	b.e.core.Receive(&b.in)
}

func (b *bench) packet(h envelope.Header) {
	b.h = h
	b.h.Source = 1
	if h.Kind.Ordered() {
		b.h.Seq = b.seq
		b.seq++
	}
	if err := b.e.core.HandlePacket(1, &b.h, b.payload[:h.Bytes]); err != nil {
		b.t.Fatal(err)
	}
}

// check checks that the requests are done.
func (b *bench) check(name string) {
	receives, messages, underway := b.e.core.Pending()
	require.Zero(b.t, receives+messages+underway, name)
	require.NoError(b.t, b.in.Err, name)
	require.NoError(b.t, b.out.Err, name)
}

// TestNoAllocation checks that common operations allocate nothing once the lists have grown.
func TestNoAllocation(t *testing.T) {
	for _, c := range traffic {
		b := newBench(t)
		for range 10 {
			c.do(b)
		}
		require.Zero(t, testing.AllocsPerRun(200, func() { c.do(b) }), c.name)
		b.check(c.name)
	}
}

func BenchmarkCore(b *testing.B) {
	for _, c := range traffic {
		b.Run(c.name, func(b *testing.B) {
			v := newBench(b)
			b.ReportAllocs()
			for b.Loop() {
				c.do(v)
			}
			v.check(c.name)
		})
	}
}
