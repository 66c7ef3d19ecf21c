// Package tally counts the packets, retransmissions, gaps and NAKs of each direction in a capture
// of RoCE v2 traffic. The counters of both adapters must agree with it.
//
//	t := tally.New()
//	for _, frame := range frames {
//		t.Add(frame) // Ethernet, IP, UDP
//	}
//	t.From(addr).Packets
//
// It is independent of the adapters' implementation: it follows the PSNs of each queue pair by
// the rules for the number of PSNs that a request consumes.
package tally
