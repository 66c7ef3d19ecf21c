package nack

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzHandle checks that arbitrary packets and events neither panic nor exceed the bounds of
// buffered data.
func FuzzHandle(f *testing.F) {
	header := func(h Header, payload string) []byte {
		h.From, h.Epoch = 1, 8
		b := make([]byte, FeedbackSize)
		b = append(b[:h.Put(b)], payload...)
		return append([]byte{byte(len(b))}, b...)
	}
	f.Add(header(Header{Kind: Data, To: 7, Flags: First, Length: 3, TxNum: 1}, "ab"))
	f.Add(append(header(Header{Kind: Data, To: 7, Flags: First | Last, Length: 1, Seq: 3, TxNum: 1}, "a"), header(Header{Kind: Data, To: 7, Flags: First | Last, Length: 1, TxNum: 1}, "b")...))
	f.Add(header(Header{Kind: Nack, To: 7, Ack: 1, Sack: 5, TxEcho: 4}, ""))
	f.Add(header(Header{Kind: Ack, To: 7, Ack: 20, TxEcho: 20}, ""))
	f.Add(header(Header{Kind: Probe, To: 7, Seq: 3, TxNum: 9}, ""))
	f.Add(header(Header{Kind: Hello}, ""))
	f.Add([]byte{200, 201, 202, 203, 204, 205})
	f.Fuzz(func(t *testing.T, script []byte) {
		c := New(Options{Peers: 2, Epoch: 7, MTU: minMTU, Slots: 40, ReorderBytes: 500})
		now := Time(1)
		c.OpenPeer(now, 0, Peer{Epoch: 8})
		c.OpenPeer(now, 1, Peer{})
		var out [10]Packet
		var has []int
		for range 20 {
			require.NoError(t, c.Send(now, 0, []byte("message"), nil))
		}
		deliver := func(m []byte) {
			require.LessOrEqual(t, len(m), c.o.MaxMessage)
			_ = c.Send(now, 0, m, nil)
		}
		for len(script) > 0 {
			op := int(script[0])
			script = script[1:]
			switch {
			case op < 200:
				n := min(op, len(script))
				c.HandlePacket(now, 0, script[:n:n], deliver)
				script = script[n:]
			case op < 210:
				for i := range out[:c.Drain(now, out[:op-199])] {
					has = append(has, out[i].Slot)
				}
			case op < 220:
				for range min(len(has), op-209) {
					c.ReleaseSlot(has[0])
					has = has[1:]
				}
			case op < 240:
				now += Time(op-219) * ms
				c.Advance(now)
			case op < 250:
				_ = c.Send(now, op%2, make([]byte, (op-240)*30), nil)
			case op < 253:
				c.NextEvent()
			default:
				c.ClosePeer(1)
			}
			c.invariants(func(ok bool, format string, args ...any) {
				require.True(t, ok, "%s", fmt.Sprintf(format, args...))
			})
			require.LessOrEqual(t, c.active.Len(), 2)
			require.LessOrEqual(t, c.timers.Len(), 2)
		}
	})
}
