// Package reliability is what makes a connection reliable: windows over PSNs,
// acknowledgements, retry and RNR timers, replay of reads and atomics, and
// end-to-end credits. It is sans-IO: PSNs and the time come in, decisions and
// deadlines go out. Nothing in it holds a lock, starts a goroutine, reads a
// clock or draws a random number, so a queue pair built from it behaves the
// same on a socket and in a simulation.
//
// The pieces are small states, owned by one queue pair and combined by
// package qp:
//
//	requester                         responder
//	---------                         ---------
//	Window   how much may be sent     Receiver   which PSN is next, one NAK a gap
//	Retry    when to send again       Acks       the one acknowledgement owed
//	RTT      how long the path is     Resources  reads and atomics to replay
//	Credits  receives at the peer     (advertised in Acks)
package reliability
