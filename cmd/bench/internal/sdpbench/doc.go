// Package sdpbench moves bytes over one connection between two processes of
// this machine: by SDP with any of its flow controls, or by Go's TCP in the
// same way, which is what its figures stand beside.
//
// A [Pair] is two processes with a connection. An experiment opens one for
// each subject and lets them take turns:
//
//	tcp, err := sdpbench.Open(ctx, sdpbench.Config{Over: sdpbench.TCP})
//	defer tcp.Close()
//	nic, err := sdpbench.Open(ctx, sdpbench.Config{Over: sdpbench.NIC, Buffers: 8, BufferBytes: 8 << 10})
//	defer nic.Close()
//	v, err := measure.Alternate(ctx, 9, tcp.PingRounds(64, 1000, nil), nic.PingRounds(64, 1000, nil))
//
// # Ping-pong
//
// Rank 0 writes a message, rank 1 answers it with one of the same size, and
// the figure is half a round trip.
//
// # Stream
//
// Rank 0 writes messages as fast as Write takes them. Rank 1 reads them, each
// by a Read of its own size as the paper's programs do, or whatever is there,
// and answers the last with one byte, at which the clock stops. The paper takes
// half a round trip off for that byte; against a round's length it is nothing.
// While a stream flows, both ends can look at their buffers now and then:
// [Flow] tells how full these were.
//
// # Bursts
//
// The ends write bursts of messages to and fro. After each burst both compute,
// one when it has written it and the other when it has read it: at once, if
// what was written arrives while its writer computes, and else one after the
// other. Computation is an amount of work, not of time: what the adapter,
// software as it is, takes of the processor makes it last longer.
//
// # HTTP
//
// An [HTTP] is another two processes: a server and the clients of package
// net/http, over many connections.
//
// # Answers
//
// Every byte is of a [payload.Pattern], and each message of a ping-pong or
// burst is stamped with its number. Readers compare all of their memory with
// what should be there when a round is over: a wrong byte is an error.
package sdpbench
