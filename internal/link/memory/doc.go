// Package memory is an in-memory network for tests, simulations and programs with
// several adapters in one process. It behaves like a UDP link: batches are sent as
// GSO groups and arrive merged, receive buffers are bounded, and the traffic class
// is carried. Unlike a socket it shows the IPv4 identification, so receivers check
// the ICRC exactly.
//
// There are two kinds of networks.
//
// [Network] has a virtual clock and no goroutine. Its driver moves the clock from
// event to event, so that a run is determined by its seed:
//
//	n := memory.New(seed)
//	a, err := n.Attach(netip.MustParseAddrPort("10.0.0.1:4791"), memory.Options{})
//	b, err := n.Attach(netip.MustParseAddrPort("10.0.0.2:4791"), memory.Options{Delay: time.Millisecond})
//	...
//	for t, ok := n.NextEvent(); ok; t, ok = n.NextEvent() {
//		n.AdvanceTo(t)
//		// poll the adapters on a and b
//	}
//
// [Live] runs in real time: datagrams arrive at once, and Wait blocks.
//
// Neither loses, delays or damages packets at random: wrap a link in link/impair
// for that. A Network drops packets that do not fit a receive buffer or a queue.
package memory
