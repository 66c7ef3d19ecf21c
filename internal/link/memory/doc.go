// Package memory is a network in memory, for tests, simulations and programs
// that want several adapters in one process without sockets. It carries what a
// UDP link carries, the same way: batches leave as GSO groups and arrive merged,
// receive buffers are bounded, the traffic class travels along. Unlike a socket
// it shows the IPv4 identification, so receivers check the ICRC exactly.
//
// There are two of them.
//
// [Network] has a virtual clock and no goroutine. Nothing happens until its
// driver moves the clock from event to event, so one seed is one run:
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
// [Live] runs in real time: datagrams arrive at once, Wait blocks, and adapters
// with their goroutines do not notice that there is no socket.
//
// Neither loses, delays or damages packets at random: wrap a link in
// link/impair for that. What a Network loses is what does not fit a receive
// buffer or a queue, as with real ones.
package memory
