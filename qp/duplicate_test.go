package qp

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// TestDuplicateWritesAndSends checks that a duplicate SEND or WRITE is not executed, and that it is
// acknowledged with the newest PSN received, even without an acknowledgement request.
func TestDuplicateWritesAndSends(t *testing.T) {
	p := connect(t)
	p.b.recv(8, 0, 600)
	p.b.recv(9, 1000, 600)
	p.a.buf[0] = 1
	p.a.post(p.now, p.write(1, 0, 4096, 600), p.send(2, 0, 600), p.write(3, 0, 8192, 8))
	pkts := p.drain(p.a)
	p.deliver(p.b, pkts...)
	p.drain(p.b)
	require.Equal(t, []string{"8 RECV len=600"}, p.b.takeCompletions())
	p.b.buf[4096], p.b.buf[0] = 77, 88
	for _, pkt := range pkts {
		require.Equal(t, wire.DropDuplicate, p.deliver(p.b, pkt))
		require.Equal(t, []string{"ACKNOWLEDGE 6 1f msn=3"}, p.describePackets(p.b, p.drain(p.b)))
	}
	require.Equal(t, []byte{77, 88}, []byte{p.b.buf[4096], p.b.buf[0]})
	require.Empty(t, p.b.takeCompletions())
	require.EqualValues(t, len(pkts), p.b.Counters().DuplicateRequest)
	require.Equal(t, 1, p.b.rq.len(), "no receive was taken")
}

// TestDuplicateReadIsNoRace checks that the race detector reports no race when a duplicate read
// accesses memory that its owner modifies, which is permitted because the requester has its
// response.
func TestDuplicateReadIsNoRace(t *testing.T) {
	p := connect(t)
	p.a.post(p.now, p.read(1, 0, 0, 600))
	req := p.drain(p.a)
	p.deliver(p.b, req...)
	p.deliver(p.a, p.drain(p.b)...)
	require.Len(t, p.a.takeCompletions(), 1)
	var owner sync.WaitGroup
	owner.Go(func() { p.b.buf[0] = 1 })
	p.deliver(p.b, req...)
	require.NotEmpty(t, p.drain(p.b))
	owner.Wait()
}

// TestDuplicateReadIsReadAgain checks that a duplicate read returns the current content of memory.
func TestDuplicateReadIsReadAgain(t *testing.T) {
	p := connect(t)
	p.b.buf[0] = 1
	p.a.post(p.now, p.read(1, 0, 0, 600))
	req := p.drain(p.a)
	p.deliver(p.b, req...)
	first := p.drain(p.b)
	p.b.buf[0] = 2
	p.deliver(p.b, req...)
	again := p.drain(p.b)
	require.Equal(t, p.describePackets(p.b, first), p.describePackets(p.b, again))
	require.Equal(t, []byte{1, 2}, []byte{first[0].Payload[0], again[0].Payload[0]})
	require.Contains(t, p.describePacket(p.b, again[0]), "msn=1", "it counts once")
}

func (p *pair) readRequest(psn int, remote, n int, key uint32) *wire.Packet {
	return p.packet(p.a, wire.BTH{Opcode: wire.RCReadRequest, PSN: wire.PSN(p.psn[0]).Add(psn), AckReq: true}, nil, func(b []byte) {
		wire.RETH{VA: p.b.base + uint64(remote), RKey: key, Length: uint32(n)}.Put(b[wire.BTHLen:])
	})
}

// TestDuplicatePartOfARead checks that a part of a read, from a later packet on or up to an earlier
// one, is served like a read; other ranges are dropped.
func TestDuplicatePartOfARead(t *testing.T) {
	for _, c := range []struct {
		what         string
		psn, from, n int
		otherKey     bool
		want         []string // not a part: dropped
	}{
		{"all", 0, 0, 1000, false, []string{"FIRST 0 len=256", "MIDDLE 1 len=256", "MIDDLE 2 len=256", "LAST 3 len=232"}},
		{"the end", 2, 512, 488, false, []string{"FIRST 2 len=256", "LAST 3 len=232"}},
		{"the last packet", 3, 768, 232, false, []string{"ONLY 3 len=232"}},
		{"the beginning", 0, 0, 512, false, []string{"FIRST 0 len=256", "LAST 1 len=256"}},
		{"one packet inside", 1, 256, 256, false, []string{"ONLY 1 len=256"}},
		{"other key", 0, 0, 1000, true, nil},
		{"other address", 0, 8, 992, false, nil},
		{"address of another packet", 1, 512, 488, false, nil},
		{"longer", 0, 0, 1001, false, nil},
		{"beyond the end", 3, 768, 256, false, nil},
		{"ends inside of a packet", 0, 0, 500, false, nil},
		{"nothing", 0, 0, 0, false, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			p := connect(t)
			p.deliver(p.b, p.readRequest(0, 0, 1000, p.b.key))
			require.Len(t, p.drain(p.b), 4)
			p.deliver(p.b, p.readRequest(4, 4096, 8, p.b.key)) // a later one
			require.Len(t, p.drain(p.b), 1)
			key := p.b.key
			if c.otherKey {
				key = p.b.mem.add(p.b.base, p.b.buf, allAccess)
			}
			d := p.deliver(p.b, p.readRequest(c.psn, c.from, c.n, key))
			got := p.describePackets(p.b, p.drain(p.b))
			if c.want == nil {
				require.Equal(t, wire.DropUnknownReplay, d)
				require.Empty(t, got)
				return
			}
			require.Len(t, got, len(c.want))
			for i, w := range c.want {
				require.Contains(t, got[i], "READ_RESPONSE_"+w)
			}
		})
	}
}

// TestReplayDoesNotNarrowTheRead checks that after a replay of the end the beginning can still be
// replayed.
func TestReplayDoesNotNarrowTheRead(t *testing.T) {
	p := connect(t)
	p.deliver(p.b, p.readRequest(0, 0, 1000, p.b.key))
	p.drain(p.b)
	p.deliver(p.b, p.readRequest(3, 768, 232, p.b.key))
	require.Len(t, p.drain(p.b), 1)
	p.deliver(p.b, p.readRequest(1, 256, 744, p.b.key))
	require.Len(t, p.drain(p.b), 3)
}

// TestDuplicateReadDuringResponse checks that a duplicate read does not restart a response in
// progress, unless the requested part has been sent.
func TestDuplicateReadDuringResponse(t *testing.T) {
	p := connect(t)
	req := p.readRequest(0, 0, 1000, p.b.key)
	p.deliver(p.b, req)
	require.Equal(t, wire.DropDuplicate, p.deliver(p.b, req))
	out := &batch{room: 2}
	require.True(t, p.b.Drain(p.now, out))
	require.Equal(t, wire.DropDuplicate, p.deliver(p.b, p.readRequest(2, 512, 488, p.b.key)))
	require.Equal(t, wire.DropNone, p.deliver(p.b, req))
	require.Len(t, p.drain(p.b), 4)
}

// TestAtomicsHappenOnce checks that a duplicate atomic is not executed again, and returns the
// original value.
func TestAtomicsHappenOnce(t *testing.T) {
	p := connect(t)
	word, _ := atomicWord(p.b.buf)
	p.a.post(p.now, p.fetchAdd(1, 0, 0, 5), p.cmpSwap(2, 8, 0, 5, 100))
	req := p.drain(p.a)
	for range 3 {
		p.deliver(p.b, req...)
		resp := p.drain(p.b)
		require.Equal(t, []string{"ATOMIC_ACKNOWLEDGE 0 1f msn=1", "ATOMIC_ACKNOWLEDGE 1 1f msn=2"}, p.describePackets(p.b, resp))
		require.EqualValues(t, 0, resp[0].AtomicAckETH().Orig)
		require.EqualValues(t, 5, resp[1].AtomicAckETH().Orig)
		*word++ // modified by the application, otherwise 100
	}
	require.EqualValues(t, 103, *word)
}

// TestEvictedResources checks that resources are kept for max_dest_rd_atomic requests, and that
// older duplicates are dropped.
func TestEvictedResources(t *testing.T) {
	p := connect(t, withRdAtomic(8, 4))
	for i := range uint64(5) {
		p.a.post(p.now, p.fetchAdd(i, 0, 0, 1))
	}
	req := p.drain(p.a)
	for _, r := range req {
		p.deliver(p.b, r)
		p.drain(p.b)
	}
	require.Equal(t, wire.DropUnknownReplay, p.deliver(p.b, req[0]))
	require.Empty(t, p.drain(p.b))
	for _, r := range req[1:] {
		require.Equal(t, wire.DropNone, p.deliver(p.b, r))
	}
	require.Len(t, p.drain(p.b), 4)
	word, _ := atomicWord(p.b.buf)
	require.EqualValues(t, 5, *word)
}

// TestReplayOfAnotherKind checks that a read is not a replay of an atomic with the same PSN, and
// vice versa.
func TestReplayOfAnotherKind(t *testing.T) {
	p := connect(t)
	p.a.post(p.now, p.fetchAdd(1, 0, 0, 1))
	p.deliver(p.b, p.drain(p.a)...)
	p.drain(p.b)
	require.Equal(t, wire.DropUnknownReplay, p.deliver(p.b, p.readRequest(0, 0, 8, p.b.key)))
	require.Empty(t, p.drain(p.b))
}

// TestStaleReadDoesNotBlockNewOne checks that a stray copy of an old read does not block a new one
// when both arrive before any response is sent.
func TestStaleReadDoesNotBlockNewOne(t *testing.T) {
	p := connect(t)
	for i := range 4 {
		p.deliver(p.b, p.readRequest(i, 0, 8, p.b.key))
		p.drain(p.b)
	}
	p.deliver(p.b, p.readRequest(0, 0, 8, p.b.key), p.readRequest(4, 0, 8, p.b.key))
	require.Equal(t, []string{"READ_RESPONSE_ONLY 4 len=8 1f msn=5"}, p.describePackets(p.b, p.drain(p.b)))
	require.Equal(t, verbs.StateRTS, p.b.State())
}

// TestTooManyReadsAtATime checks that more concurrent reads than max_dest_rd_atomic are rejected.
func TestTooManyReadsAtATime(t *testing.T) {
	p := connect(t)
	for i := range 4 {
		p.deliver(p.b, p.readRequest(i, 0, 8, p.b.key))
	}
	p.deliver(p.b, p.readRequest(4, 0, 8, p.b.key))
	require.Equal(t, verbs.StateErr, p.b.State())
	got := p.describePackets(p.b, p.drain(p.b))
	require.Len(t, got, 5, "what was accepted is answered first")
	require.Equal(t, "ACKNOWLEDGE 4 61 msn=4", got[4])
}

// TestReadMemoryBecomesInvalid checks memory that becomes invalid during a read response: NAK 0x62 at the
// PSN of the next packet, an event, and ERR. Later responses do not overtake it.
func TestReadMemoryBecomesInvalid(t *testing.T) {
	p := connect(t)
	key := p.b.mem.add(p.b.base, p.b.buf, allAccess)
	p.deliver(p.b, p.readRequest(0, 0, 1000, key), p.readRequest(4, 0, 8, p.b.key))
	out := &batch{room: 2}
	require.True(t, p.b.Drain(p.now, out))
	delete(p.b.mem.regions, key)
	require.Equal(t, []string{"ACKNOWLEDGE 2 62 msn=2"}, p.describePackets(p.b, p.drain(p.b)))
	require.Equal(t, verbs.StateErr, p.b.State())
	require.Equal(t, []verbs.EventType{verbs.EventQPAccessErr}, p.b.raised())
}

// TestReplayOfInvalidMemory checks that a duplicate read of invalid memory is dropped: the requester
// may have its response, and its owner may have deregistered the memory since.
func TestReplayOfInvalidMemory(t *testing.T) {
	p := connect(t)
	key := p.b.mem.add(p.b.base, p.b.buf, allAccess)
	req := p.readRequest(0, 0, 1000, key)
	p.deliver(p.b, req)
	require.Len(t, p.drain(p.b), 4)
	delete(p.b.mem.regions, key)
	p.deliver(p.b, req)
	require.Empty(t, p.drain(p.b))
	require.Equal(t, verbs.StateRTS, p.b.State())
}

// TestResourcesResizeInSQD checks that max_dest_rd_atomic can change in SQD while responses are in
// progress.
func TestResourcesResizeInSQD(t *testing.T) {
	for _, limit := range []uint8{1, 2, 8} {
		p := connect(t)
		p.deliver(p.b, p.readRequest(0, 0, 600, p.b.key))
		require.NoError(t, p.modify(p.b, verbs.StateSQD))
		require.NoError(t, p.b.Modify(p.now, &verbs.QPAttr{MaxDestRdAtomic: limit}, verbs.AttrMaxDestRdAtomic))
		require.Len(t, p.drain(p.b), 3)
		p.deliver(p.b, p.readRequest(0, 0, 600, p.b.key))
		require.Len(t, p.drain(p.b), 3, "and can be repeated")
	}
}
