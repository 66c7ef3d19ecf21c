package nack

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestReceiverAgainstModel receives packets in random order with duplicates, and compares the
// delivered messages and the acknowledgements with a slow model that keeps packets in a map.
func TestReceiverAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const total = 200
		c := New(Options{Peers: 1, Epoch: 8, MTU: minMTU})
		c.first = rapid.SampledFrom([]uint32{0, 5, 1<<32 - 100, 1<<31 - 100}).Draw(t, "first")
		c.OpenPeer(1, 0, Peer{Epoch: 7})
		come, next, order := map[uint32]bool{}, uint32(0), uint32(0)
		var got []byte
		for range rapid.IntRange(1, 250).Draw(t, "packets") {
			seq := next + uint32(rapid.IntRange(-3, Window+3).Draw(t, "ahead"))
			if seq >= total {
				continue
			}
			order++
			h := Header{Kind: Data, Flags: First | Last, Epoch: 7, To: 8, Seq: c.first + seq, TxNum: c.first + order, Ack: c.first, TxEcho: c.first, Length: 1}
			b := append(make([]byte, DataSize), byte(seq))
			h.Put(b)
			want := DropNone
			switch {
			case seq >= next+Window:
				want = DropTooFar
			case come[seq]:
				want = DropDuplicate
			}
			require.Equal(t, want, c.HandlePacket(2, 0, b, func(m []byte) { got = append(got, m[0]) }))
			if want == DropTooFar {
				order--
			} else {
				come[seq] = true
			}
			for come[next] {
				next++
			}
			require.Len(t, got, int(next))
			if next > 0 {
				require.Equal(t, byte(next-1), got[next-1])
			}
			c.peers.Get(0).control.ack = true
			c.markActive(c.peers.Get(0))
			var out [2]Packet
			require.Equal(t, 1, c.Drain(2, out[:]))
			require.True(t, h.Parse(out[0].Bytes))
			require.Equal(t, c.first+next, h.Ack)
			require.Equal(t, c.first+order, h.TxEcho)
			have := uint64(0)
			for i := range uint32(64) {
				if come[next+1+i] {
					have |= 1 << i
				}
			}
			require.Equal(t, have, h.Sack)
			require.Equal(t, have != 0, h.Kind == Nack)
		}
	})
}

// TestSenderAgainstModel handles random acknowledgements, and compares the buffered and the
// retransmitted packets with a slow model that has the state of each packet.
func TestSenderAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := New(Options{Peers: 1, Epoch: 7, MTU: minMTU, Slots: 70})
		c.OpenPeer(1, 0, Peer{Epoch: 8})
		now := Time(1)
		left := map[uint32]uint32{} // sequence of the last transmission of a packet
		come := map[uint32]bool{}
		una, next, order := uint32(0), uint32(0), uint32(1)
		var out [Window]Packet
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += 3 * ms
			for range rapid.IntRange(0, 20).Draw(t, "messages") {
				err := c.Send(now, 0, []byte{byte(next)}, nil)
				require.Equal(t, next-una >= Window, err == ErrWouldBlock)
				if err == nil {
					next++
				}
			}
			c.peers.Get(0).out.window.Reset(minMTU, 0) // the window is tested elsewhere
			c.markActive(c.peers.Get(0))
			for n := c.Drain(now, out[:]); n > 0; n = c.Drain(now, out[:]) {
				for i := range out[:n] {
					var h Header
					require.True(t, h.Parse(out[i].Bytes))
					require.Equal(t, order, h.TxNum)
					if order++; h.Kind == Data {
						require.Equal(t, []byte{byte(h.Seq)}, out[i].Bytes[DataSize:])
						require.False(t, come[h.Seq], "packet %d is known to have come", h.Seq)
						left[h.Seq] = h.TxNum
					}
					c.ReleaseSlot(out[i].Slot)
				}
			}
			require.Len(t, left, int(next), "all have left")
			if rapid.Bool().Draw(t, "quiet") {
				continue
			}
			echo := uint32(rapid.IntRange(0, int(order-1)).Draw(t, "echo"))
			h := Header{Kind: Nack, Epoch: 8, To: 7, TxEcho: echo}
			for seq := una; seq != next; seq++ { // packets sent up to echo may have arrived
				if left[seq] <= echo && rapid.Bool().Draw(t, "came") {
					come[seq] = true
				}
			}
			for come[una] {
				una++
			}
			h.Ack = una
			for i := range uint32(Window - 1) {
				if come[una+1+i] {
					h.Sack |= 1 << i
				}
			}
			var again []uint32
			for seq := una; seq != next; seq++ {
				if !come[seq] && left[seq] < echo {
					again = append(again, seq)
				}
			}
			var b [FeedbackSize]byte
			h.Put(b[:])
			require.Equal(t, DropNone, c.HandlePacket(now, 0, b[:], nil))
			var lost []uint32
			for seq := una; seq != next; seq++ {
				if r := c.peers.Get(0).out.ring; r.lost&seqBit(seq) != 0 {
					lost = append(lost, seq)
				}
			}
			require.Equal(t, again, lost)
			kept := 0
			for seq := una; seq != next; seq++ {
				if !come[seq] {
					kept++
				}
			}
			require.Equal(t, kept, len(c.slots.state)-len(c.slots.free))
			for _, ok := c.NextEvent(); ok; _, ok = c.NextEvent() {
			}
		}
	})
}
