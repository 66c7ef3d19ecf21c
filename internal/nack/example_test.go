package nack_test

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/nack"
)

// Two ends, and a network that loses the second of three packets, and later the only packet of
// another message.
func Example() {
	now := nack.Time(1)
	var end [2]*nack.Core
	for i := range end {
		end[i] = nack.New(nack.Options{Self: uint32(i), Peers: 2, Epoch: uint32(7 + i), MTU: 128})
	}
	end[0].OpenPeer(now, 1, nack.Peer{Epoch: 8}) // they know each other's epochs
	end[1].OpenPeer(now, 0, nack.Peer{Epoch: 7})

	packets := make([]nack.Packet, 16)
	travel := func(from int, lost ...int) {
		for i := range packets[:end[from].Drain(now, packets)] {
			p := &packets[i]
			var h nack.Header
			h.Parse(p.Bytes)
			fmt.Printf("%d sends %v seq %d ack %d sack %b", from, h.Kind, h.Seq, h.Ack, h.Sack)
			if len(lost) > 0 && lost[0] == i {
				fmt.Println(", which gets lost")
			} else {
				fmt.Println()
				end[p.Peer].HandlePacket(now, from, p.Bytes, func(message []byte) { fmt.Printf("%d has got %d bytes\n", p.Peer, len(message)) })
			}
			end[from].ReleaseSlot(p.Slot)
		}
	}

	_ = end[0].Send(now, 1, make([]byte, 250), nil)
	travel(0, 1) // the receiver sees the gap
	travel(1)
	travel(0)
	_ = end[0].Send(now, 1, []byte("tail"), nil)
	travel(0, 0) // only a probe detects this loss
	now = end[0].Deadline()
	end[0].Advance(now)
	travel(0)
	travel(1)
	travel(0)
	// Output:
	// 0 sends DATA seq 0 ack 0 sack 0
	// 0 sends DATA seq 1 ack 0 sack 0, which gets lost
	// 0 sends DATA seq 2 ack 0 sack 0
	// 1 sends NACK seq 0 ack 1 sack 1
	// 0 sends DATA seq 1 ack 0 sack 0
	// 1 has got 250 bytes
	// 0 sends DATA seq 3 ack 0 sack 0, which gets lost
	// 0 sends PROBE seq 4 ack 0 sack 0
	// 1 sends NACK seq 0 ack 3 sack 0
	// 0 sends DATA seq 3 ack 0 sack 0
	// 1 has got 4 bytes
}
