// Package sdpbench moves bytes over one connection between two processes of
// this machine: by SDP with any of its flow controls, or by Go's TCP as the
// baseline.
//
// A [Pair] is two processes with a connection. An experiment opens one for
// each target and alternates them:
//
//	tcp, err := sdpbench.Open(ctx, sdpbench.Config{Transport: sdpbench.TCP})
//	defer tcp.Close()
//	nic, err := sdpbench.Open(ctx, sdpbench.Config{Transport: sdpbench.NIC, Buffers: 8, BufferBytes: 8 << 10})
//	defer nic.Close()
//	v, err := measure.Alternate(ctx, 9, tcp.PingRounds(64, 1000, nil), nic.PingRounds(64, 1000, nil))
//
// # Ping-pong
//
// Rank 0 writes a message, rank 1 replies with one of the same size, and
// the figure is half a round trip.
//
// # Stream
//
// Rank 0 writes messages as fast as Write accepts them. Rank 1 reads them, each
// by a Read of its size like the paper's programs, or any available data,
// and acknowledges the last with one byte, which stops the clock. The paper subtracts
// half a round trip for that byte; it is negligible compared with a round.
// During a stream both sides can sample the fill level of their buffers:
// [Flow] has the averages.
//
// # Bursts
//
// The sides exchange bursts of messages. After each burst both compute,
// one after the write and the other after the read: in parallel if
// the data arrives while its writer computes, and otherwise one after the
// other. Computation is an amount of work, not of time: the processor time
// of the software adapter makes it last longer.
//
// # HTTP
//
// An [HTTP] is another two processes: a server and the clients of package
// net/http, over many connections.
//
// # Verification
//
// Every byte is of a [payload.Pattern], and each message of a ping-pong or
// burst is stamped with its number. Readers compare their whole memory with
// the expected content at the end of a round: a wrong byte is an error.
package sdpbench
