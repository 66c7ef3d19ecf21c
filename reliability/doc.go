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
//
// # Where the rules come from
//
// Retries, RNR waits, the order of NAKs, replay and credits follow the
// InfiniBand Architecture Specification, volume 1, chapter 9.7, as Linux's
// rdma_rxe, rdmavt and hfi1 agree on it. Where they differ the text of the type
// says which way was taken. RoCE leaves the [Window] to the adapter, and the
// probes of [Retry] are ordinary repeated packets: a peer sees nothing of
// either that it could not see from any other adapter.
//
// # Time
//
// A [Time] is nanoseconds on whatever clock the caller has; 0 means never. What
// waits for time to pass says so by its Deadline, and is asked again when that
// has come:
//
//	if d := retry.Deadline(); d != 0 && now >= d {
//		switch retry.Expired(now, &rtt) {
//		case reliability.GoBack: // send everything again from the oldest packet
//		case reliability.Probe:  // send the oldest packet again, for free
//		case reliability.GiveUp: // fail the oldest request
//		}
//	}
//
// Before it asks, the caller has handled every packet that had arrived by now: what
// its process has not read yet must not count as an answer that is missing. Now is the clock's, however
// late: by how much it is past the Deadline shows how long the process did not run.
package reliability
