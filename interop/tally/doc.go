// Package tally counts what a capture of RoCE v2 packets shows, as an onlooker
// between the two adapters sees it: packets, repetitions, gaps, and refusals of
// each direction. The counters of both adapters must agree with it.
//
//	t := tally.New()
//	for _, frame := range frames {
//		t.Add(frame) // Ethernet, IP, UDP
//	}
//	t.From(addr).Packets
//
// It knows nothing of how the adapters work: it follows the PSNs of each queue
// pair by the rules for what a request takes up.
package tally
