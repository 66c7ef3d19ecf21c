// Package reliability implements the reliability mechanisms of a reliable
// connection: windows over packet sequence numbers (PSN), acknowledgements,
// retransmission and receiver-not-ready (RNR) timers, replay of reads and
// atomics, and end-to-end credits. It is sans-IO: the inputs are PSNs and the
// time, the outputs are decisions and deadlines. The package takes no lock,
// starts no goroutine, reads no clock and draws no random number, so a queue
// pair built from it behaves the same on a socket and in a simulation.
//
// The parts are small state machines. Each belongs to one queue pair. Package
// qp combines them:
//
//	requester                         responder
//	---------                         ---------
//	Window   congestion window        Receiver   expected PSN, one NAK per gap
//	Retry    retransmission timers    Acks       the pending acknowledgement
//	RTT      round-trip estimate      Resources  reads and atomics to replay
//	Credits  receives of the peer     (advertised in Acks)
//
// # Sources
//
// Retries, RNR waits, the order of NAKs, replay and credits follow the
// InfiniBand Architecture Specification, volume 1, chapter 9.7, as Linux's
// rdma_rxe, rdmavt and hfi1 implement it. Where these differ, the comment of the
// type names the choice. RoCE leaves the [Window] to the adapter, and the probes
// of [Retry] are ordinary retransmissions, so both are compatible with any peer.
//
// # Time
//
// A [Time] is in nanoseconds on the caller's clock. 0 means never. A type with a
// timer returns the time of its next event from Deadline, and the caller calls
// the type again at that time:
//
//	if d := retry.Deadline(); d != 0 && now >= d {
//		switch retry.OnTimer(now, &rtt) {
//		case reliability.GoBack: // retransmit all packets from the oldest on
//		case reliability.Probe:  // retransmit the oldest packet without using a retry
//		case reliability.GiveUp: // fail the oldest request
//		}
//	}
//
// The caller must first handle all packets that have arrived by now, so that an
// unread acknowledgement does not count as missing. now is the current time, not
// the deadline: the difference shows how long the process did not run.
package reliability
