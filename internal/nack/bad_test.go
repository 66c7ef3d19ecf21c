package nack

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// packet returns a DATA packet of end 0, modified by change.
func (p *pair) packet(payload string, change func(h *Header)) []byte {
	h := Header{Kind: Data, Flags: First | Last, Epoch: 7, To: 8, TxNum: 1, Length: uint32(len(payload))}
	change(&h)
	b := make([]byte, FeedbackSize+len(payload))
	n := h.Put(b)
	return append(b[:n], payload...)
}

// TestBadPackets checks that invalid packets are counted as drops and have no effect.
func TestBadPackets(t *testing.T) {
	for _, c := range []struct {
		name    string
		want    Drop
		payload string
		change  func(h *Header)
	}{
		{"no kind", DropMalformed, "", func(h *Header) { h.Kind = 0 }},
		{"unknown kind", DropMalformed, "", func(h *Header) { h.Kind = lastKind }},
		{"unknown flag", DropMalformed, "x", func(h *Header) { h.Flags |= 16 }},
		{"no epoch", DropMalformed, "x", func(h *Header) { h.Epoch = 0 }},
		{"without destination", DropMalformed, "x", func(h *Header) { h.To = 0 }},
		{"HELLO for another end", DropMalformed, "", func(h *Header) { *h = Header{Kind: Hello, Epoch: 7, To: 8} }},
		{"PROBE with flags", DropMalformed, "", func(h *Header) { h.Kind = Probe }},
		{"PROBE with payload", DropMalformed, "xxxx", func(h *Header) { h.Kind, h.Flags = Probe, 0 }},
		{"complete message with another length", DropMalformed, "x", func(h *Header) { h.Length = 2 }},
		{"fragment without payload", DropMalformed, "", func(h *Header) { h.Flags, h.Length = First, 2 }},
		{"fragment of the whole length", DropMalformed, "xy", func(h *Header) { h.Flags, h.Length = First, 2 }},
		{"too long a message", DropTooLong, "x", func(h *Header) { h.Flags, h.Length = First, 1<<32-1 }},
		{"another incarnation of this end", DropStaleDestination, "x", func(h *Header) { h.To = 9 }},
		{"an earlier incarnation of the peer", DropOldEpoch, "x", func(h *Header) { h.Epoch = 6 }},
		{"too far ahead", DropTooFar, "x", func(h *Header) { h.Seq = Window }},
		{"probe with too long a range", DropTooFar, "", func(h *Header) { h.Kind, h.Flags, h.Seq = Probe, 0, Window+1 }},
		{"acknowledges a packet that was not sent", DropUnsentAck, "x", func(h *Header) { h.Ack = 1 }},
		{"echoes a packet that was not sent", DropUnsentAck, "x", func(h *Header) { h.TxEcho = 1 }},
		{"reports a packet that was not sent", DropUnsentAck, "", func(h *Header) { h.Kind, h.Flags, h.Sack = Nack, 0, 1 }},
		{"NACK of what was never sent", DropUnsentAck, "", func(h *Header) { h.Kind, h.Flags, h.Ack = Nack, 0, 2 }},
		{"a middle without a beginning", DropInconsistent, "x", func(h *Header) { h.Flags, h.Length = 0, 2 }},
		{"an end without a beginning", DropInconsistent, "x", func(h *Header) { h.Flags, h.Length = Last, 2 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t, Options{})
			require.Equal(t, c.want, p.handle(1, p.packet(c.payload, c.change)))
			require.EqualValues(t, 1, p.end[1].Stats.Dropped[c.want])
			require.Empty(t, p.got[1])
			p.run(100 * ms)
			require.NoError(t, p.end[1].idle())
			require.Empty(t, p.events(1))
			p.send(0, "good")
			p.run(100 * ms)
			require.Equal(t, []string{"good"}, p.got[1])
		})
	}
	for d := range drops {
		require.NotEmpty(t, d.String())
	}
	require.Len(t, Drops(), int(drops)-1)
}

// TestInconsistentFragments checks that fragments that are inconsistent with their message are dropped, and valid
// ones accepted. If the inconsistent ones have been acknowledged out of order, the peer is Broken.
func TestInconsistentFragments(t *testing.T) {
	middle := func(seq uint32, length int, flags Flags) func(h *Header) {
		return func(h *Header) { h.Seq, h.TxNum, h.Length, h.Flags = seq, seq+1, uint32(length), flags }
	}
	for name, lie := range map[string]func(h *Header){
		"other length": middle(1, 5, 0),
		"too much":     middle(1, 3, Last), // two more bytes
		"another":      middle(1, 4, First),
		"early end":    middle(1, 9, Last),
		"no end":       middle(1, 4, 0),
	} {
		p := newPair(t, Options{})
		b := p.packet("cd", lie)
		require.Equal(t, DropNone, p.handle(1, p.packet("ab", middle(0, 4, First))), name)
		require.Equal(t, DropInconsistent, p.handle(1, b), name)
		require.Empty(t, p.got[1])
		require.Equal(t, DropNone, p.handle(1, p.packet("cd", middle(1, 4, Last))), name)
		require.Equal(t, []string{"abcd"}, p.got[1])

		p = newPair(t, Options{})
		require.Equal(t, DropNone, p.handle(1, b), name)
		require.Equal(t, DropInconsistent, p.handle(1, p.packet("ab", middle(0, 4, First))), name)
		require.Equal(t, []Event{{0, ProtocolError}}, p.events(1))
		p.run(100 * ms)
		require.NoError(t, p.end[1].idle())
		require.Equal(t, DropPeerClosed, p.handle(1, b))
	}
}

// TestFloodOfNACKs checks that a NACK received a thousand times causes one retransmission.
func TestFloodOfNACKs(t *testing.T) {
	p := newPair(t, Options{})
	for range Window {
		p.send(0, "x")
	}
	var out [200]Packet
	n := p.end[0].Drain(p.now, out[:]) + p.end[0].Drain(p.now, out[sendQuota:])
	require.Equal(t, 2*sendQuota, n)
	for i := range out[:n] {
		p.end[0].ReleaseSlot(out[i].Slot)
	}
	h := Header{Kind: Nack, Epoch: 8, To: 7, Sack: 1 << 20, TxEcho: 22} // 21 arrived, none of the earlier ones
	var b [FeedbackSize]byte
	h.Put(b[:])
	for range 1000 {
		p.now += 1 * us
		require.Equal(t, DropNone, p.handle(0, b[:]))
		for k := p.end[0].Drain(p.now, out[:]); k > 0; k = p.end[0].Drain(p.now, out[:]) {
			for i := range out[:k] {
				p.end[0].ReleaseSlot(out[i].Slot)
			}
		}
	}
	require.EqualValues(t, 21, p.end[0].Stats.Retransmitted, "0 to 20")
	require.EqualValues(t, Window, p.end[0].Stats.Packets)
	require.EqualValues(t, 1000, p.end[0].Stats.NacksReceived)
}

// TestFloodOfProbes checks that probes and duplicates of a batch get one acknowledgement.
func TestFloodOfProbes(t *testing.T) {
	p := newPair(t, Options{})
	for i := range 1000 {
		p.handle(1, p.packet("", func(h *Header) { *h = Header{Kind: Probe, Epoch: 7, To: 8, TxNum: uint32(i)} }))
		p.handle(1, p.packet("", func(h *Header) { *h = Header{Kind: Hello, Epoch: 7} }))
		p.handle(1, p.packet("x", func(h *Header) {}))
		p.handle(1, p.packet("x", func(h *Header) { h.To = 3 }))
	}
	var out [100]Packet
	require.Equal(t, 2, p.end[1].Drain(p.now, out[:]), "HELLO and ACK")
	require.Len(t, p.got[1], 1)
}

// TestOutOfOrderIsBounded checks that out-of-order packets of all peers are bounded by
// Options.ReorderBytes.
func TestOutOfOrderIsBounded(t *testing.T) {
	const each, room = 80, 1000
	p := newPair(t, Options{ReorderBytes: room})
	for seq := uint32(1); seq < Window; seq++ {
		want := DropNone
		if seq*each > room {
			want = DropNoMemory
		}
		require.Equal(t, want, p.handle(1, p.packet(strings.Repeat("x", each), func(h *Header) { h.Seq, h.TxNum = seq, seq+1 })))
	}
	require.Equal(t, room/each*each, p.end[1].reorderBytes)
	require.EqualValues(t, room/each+1, p.end[1].peers.Get(0).in.maxTxNum, "what is dropped is no sign that others are lost")
	for i := range uint32(3) { // duplicates are not buffered twice
		require.Equal(t, DropDuplicate, p.handle(1, p.packet("again", func(h *Header) { h.Seq = i + 1 })))
	}
	p.end[1].ClosePeer(0)
	require.Zero(t, p.end[1].reorderBytes)
}

// TestOptions checks that invalid options are refused.
func TestOptions(t *testing.T) {
	good := Options{Peers: 1, Epoch: 1, MTU: minMTU}
	require.NotPanics(t, func() { New(good) })
	for i, change := range []func(o *Options){
		func(o *Options) { o.Peers = 0 }, func(o *Options) { o.Epoch = 0 },
		func(o *Options) { o.MTU = minMTU - 1 }, func(o *Options) { o.MTU = 1 << 16 },
		func(o *Options) { o.Memory = make([]byte, 10) },
	} {
		o := good
		change(&o)
		require.Panics(t, func() { New(o) }, fmt.Sprint(i))
	}
	c := New(Options{Peers: 1, Epoch: 1, MTU: 1000, Slots: 3})
	require.Equal(t, 3*(1000-DataSize), c.o.MaxMessage)
	require.Len(t, c.slots.state, 3)
}

// TestUnknownNames checks that the names of undefined events and drops contain their number.
func TestUnknownNames(t *testing.T) {
	require.Equal(t, "EventKind(200)", EventKind(200).String())
	require.Equal(t, "Drop(200)", Drop(200).String())
	require.Equal(t, "protocol error", ProtocolError.String())
}
