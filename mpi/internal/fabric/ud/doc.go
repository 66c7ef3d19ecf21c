// Package ud carries the packets of ranks over unreliable datagrams: one UD queue pair
// serves all ranks, so that memory does not grow with connections. Package
// internal/nack makes messages reliable by retransmission (PPoPP '07, section 4.3).
//
//	f, err := ud.New(dev, host, book, ud.Options{}) // a fabric.Fabric
//
// A rank publishes its address in the book: IP address and UDP port of its adapter,
// queue pair number, Q_Key, epoch and MTU. Other ranks look it up when they first send
// to it or receive from it. The adapter drops datagrams with another Q_Key, and the
// epoch distinguishes the packets of this job from those of a previous one.
//
// Messages longer than Options.Eager use a rendezvous, and are sent in packets of that
// size: there is no RDMA over UD.
//
// Receives are posted for datagrams of all ranks. A datagram that finds none is lost,
// like one lost by the network, and is retransmitted.
//
// The goroutine that waits makes progress. A timer handles deadlines (the probe for a
// lost tail, for example), and polls occasionally while the program computes.
package ud
