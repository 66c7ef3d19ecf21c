// Package ud carries the packets of ranks over unreliable datagrams: one UD queue
// pair talks to all of them, so that memory does not grow with connections, of
// which there are none. Package reliability/nack makes messages reliable: what is
// lost is asked for again (PPoPP '07, section 4.3).
//
//	f, err := ud.New(dev, host, book, ud.Options{}) // a fabric.Fabric
//
// A rank puts where it is into the book: address and UDP port of its adapter,
// queue pair number, Q_Key, epoch and MTU. Another one looks that up when it first
// sends to it, or hears of it. Who does not have the Q_Key is not heard, and the
// epoch tells this job's packets from those of the one before.
//
// Messages that are longer than Options.Eager are asked for, and follow in packets
// of that size: there is no RDMA over UD.
//
// Receives are posted for whatever may come, of whomever. A datagram that finds
// none is lost, as is one that the network loses, and comes again.
//
// Whoever waits serves the network. What is due at a time (a question about a lost
// tail, for example) is done by a timer, whether anybody waits or not; it also looks
// now and then what has come while the program computes.
package ud
