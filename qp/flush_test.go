package qp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// TestAtomicWriteAndFlush compares packets, completions and memory of both requests among others.
func TestAtomicWriteAndFlush(t *testing.T) {
	p := connect(t)
	copy(p.a.buf, "ABCDEFGHabcdefgh")
	whole := p.flush(3, -1, 77)
	whole.Flush.Selectivity = verbs.FlushRegion
	inline := p.atomicWrite(4, 0, 16)
	inline.Flags, inline.SGList, inline.InlineData = inline.Flags|verbs.SendInline, nil, []byte("12345678")
	p.a.post(p.now, p.write(0, 8, 0, 8), p.flush(1, 0, 8), p.atomicWrite(2, 0, 8), whole, inline)
	pkts := p.drain(p.a)
	require.Len(t, pkts, 5)
	for _, pkt := range pkts[1:] {
		require.True(t, pkt.BTH.AckReq)
	}
	require.Equal(t, wire.FETH{Placement: wire.PlacementGlobal}, pkts[1].FETH())
	require.Equal(t, wire.RETH{VA: p.b.base, RKey: p.b.key, Length: 8}, pkts[1].RETH())
	require.Equal(t, wire.RETH{VA: p.b.base + 8, RKey: p.b.key, Length: 8}, pkts[2].RETH())
	require.Equal(t, wire.FETH{Placement: wire.PlacementGlobal, Selectivity: wire.SelectRegion}, pkts[3].FETH())
	require.Equal(t, wire.DropNone, p.deliver(p.b, pkts...))
	responses := p.drain(p.b)
	require.Equal(t, []string{
		"READ_RESPONSE_ONLY 1 1f msn=2", "READ_RESPONSE_ONLY 2 1f msn=3", "READ_RESPONSE_ONLY 3 1f msn=4", "READ_RESPONSE_ONLY 4 1f msn=5",
	}, p.describePackets(p.b, responses))
	require.Equal(t, "abcdefghABCDEFGH12345678", string(p.b.buf[:24]))
	p.deliver(p.a, responses...)
	require.Equal(t, []string{"0 RDMA_WRITE len=8", "1 FLUSH len=8", "2 ATOMIC_WRITE len=8", "3 FLUSH len=77", "4 ATOMIC_WRITE len=8"}, p.a.takeCompletions())
	require.Empty(t, p.drain(p.a))
}

// TestAtomicWritesHappenOnce checks that a duplicate ATOMIC WRITE is answered and not executed again, whatever its
// address is, and a duplicate FLUSH likewise.
func TestAtomicWritesHappenOnce(t *testing.T) {
	p := connect(t)
	copy(p.a.buf, "ABCDEFGH")
	p.a.post(p.now, p.atomicWrite(1, 0, 0), p.flush(2, 0, 8))
	pkts := p.drain(p.a)
	for i := range 3 {
		p.deliver(p.b, pkts...)
		require.Equal(t, []string{"READ_RESPONSE_ONLY 0 1f msn=1", "READ_RESPONSE_ONLY 1 1f msn=2"}, p.describePackets(p.b, p.drain(p.b)))
		if i == 0 {
			require.Equal(t, "ABCDEFGH", string(p.b.buf[:8]))
			copy(p.b.buf, "modified")
		}
	}
	require.Equal(t, "modified", string(p.b.buf[:8]))
	require.Equal(t, wire.DropUnknownReplay, p.deliver(p.b, p.readRequest(0, 0, 8, p.b.key)), "a read is not its replay")
}

// TestLostResponses loses the request or the response of each, which the requester then repeats.
func TestLostResponses(t *testing.T) {
	for _, lost := range []string{"request", "response"} {
		p := connect(t)
		copy(p.a.buf, "ABCDEFGH")
		p.a.post(p.now, p.atomicWrite(1, 0, 0), p.flush(2, 0, 8))
		pkts := p.drain(p.a)
		if lost == "response" {
			p.deliver(p.b, pkts...)
			p.drain(p.b)
			copy(p.b.buf, "modified")
		}
		p.advanceToDeadline(p.a)
		p.exchange()
		require.Equal(t, []string{"1 ATOMIC_WRITE len=8", "2 FLUSH len=8"}, p.a.takeCompletions(), lost)
		want := map[string]string{"request": "ABCDEFGH", "response": "modified"}
		require.Equal(t, want[lost], string(p.b.buf[:8]), lost)
	}
}

// TestOutstandingFlushes checks that both requests count among the outstanding reads.
func TestOutstandingFlushes(t *testing.T) {
	p := connect(t, withRdAtomic(2, 2))
	p.a.post(p.now, p.flush(1, 0, 8), p.atomicWrite(2, 0, 0), p.flush(3, 0, 8), p.atomicWrite(4, 0, 0), p.read(5, 100, 0, 8))
	pkts := p.drain(p.a)
	require.Len(t, pkts, 2)
	p.deliver(p.b, pkts...)
	p.deliver(p.a, p.drain(p.b)...)
	require.Len(t, p.drain(p.a), 2)
}

// TestTooManyAtomicWrites checks that a responder whose places are taken does not write.
func TestTooManyAtomicWrites(t *testing.T) {
	p := connect(t, withRdAtomic(2, 1))
	copy(p.a.buf, "ABCDEFGH")
	p.a.post(p.now, p.atomicWrite(1, 0, 0), p.atomicWrite(2, 0, 8))
	p.deliver(p.b, p.drain(p.a)...)
	require.Equal(t, make([]byte, 8), p.b.buf[8:16])
	require.Equal(t, verbs.StateErr, p.b.State())
	p.deliver(p.a, p.drain(p.b)...)
	require.Equal(t, []string{"1 ATOMIC_WRITE len=8", "2 REM_INV_REQ_ERR"}, p.a.takeCompletions())
}

// TestFlushPostChecks checks the errors of requests that no responder can execute.
func TestFlushPostChecks(t *testing.T) {
	p := connect(t)
	for name, change := range map[string]func(wr *verbs.SendWR){
		"flush with placement 0":                func(wr *verbs.SendWR) { wr.Flush.Placement = 0 },
		"flush with placement 4":                func(wr *verbs.SendWR) { wr.Flush.Placement = 4 },
		"flush with placement 1, selectivity 2": func(wr *verbs.SendWR) { wr.Flush.Selectivity = 2 },
		"ATOMIC_WRITE writes 8 bytes, not 4":    func(wr *verbs.SendWR) { *wr = p.write(1, 0, 0, 4); wr.Opcode = verbs.WRAtomicWrite },
		"ATOMIC_WRITE writes 8 bytes, not 3": func(wr *verbs.SendWR) {
			*wr = verbs.SendWR{Opcode: verbs.WRAtomicWrite, Flags: verbs.SendInline, InlineData: []byte("abc")}
		},
	} {
		wr := p.flush(1, 0, 8)
		change(&wr)
		_, err := p.a.PostSend(p.now, []verbs.SendWR{wr})
		require.ErrorIs(t, err, verbs.ErrInvalid, name)
		require.ErrorContains(t, err, name)
	}
	for _, typ := range []verbs.QPType{verbs.UC, verbs.UD} {
		p := connect(t, ofType(typ))
		for _, wr := range []verbs.SendWR{p.flush(1, 0, 8), p.atomicWrite(1, 0, 0)} {
			_, err := p.a.PostSend(p.now, []verbs.SendWR{wr})
			require.ErrorIs(t, err, verbs.ErrUnsupported)
		}
	}
}

// TestAtomicWriteSource checks that a source without access ends the request, after earlier ones.
func TestAtomicWriteSource(t *testing.T) {
	p := connect(t)
	wr := p.atomicWrite(2, 0, 0)
	wr.SGList[0].LKey = 0xbad
	p.a.post(p.now, p.write(1, 0, 0, 8), wr)
	p.exchange()
	require.Equal(t, []string{"1 RDMA_WRITE len=8", "2 LOC_PROT_ERR"}, p.a.takeCompletions())
}
