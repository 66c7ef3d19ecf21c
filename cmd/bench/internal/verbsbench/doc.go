// Package verbsbench generates traffic through the adapter between two processes
// of this machine, which experiments compare with the bare sockets of package
// udpraw.
//
// A [Pair] is two processes with a device each. On it, an experiment opens
// targets, each with its own queue pairs, completion queues and memory,
// and alternates them with their baseline:
//
//	pair, err := verbsbench.OpenPair(ctx, verbsbench.Config{MTU: 4096})
//	defer pair.Close()
//	ping, err := pair.OpenPingPong(ctx, verbsbench.PingOptions{Op: verbsbench.RCWrite, Size: 8})
//	stream, err := pair.OpenStream(ctx, verbsbench.StreamOptions{Op: verbsbench.RCSend, Size: 65536})
//	v, err := measure.Alternate(ctx, 9, baseline, ping.LatencyRounds(3000, nil))
//
// # Ping-pong
//
// Rank 0 sends, rank 1 replies, and the figure is half a round trip. For reads
// and atomics, which the adapter of rank 1 serves, it is a whole round trip while rank 1's
// program sleeps. The receiver polls memory for a write, and the completion
// queue for a send. With PingOptions.Event the waiter blocks until a
// completion event. Then a write carries an immediate, because a plain one
// has no completion at the target.
//
// # Stream
//
// Rank 0 keeps a number of requests in flight. RC writes and reads target a
// sleeping program: its adapter serves them. UC and UD have no acknowledgements, so
// the receiver returns credits by small RC writes, as such applications do,
// and missing messages are counted as lost. A UC write carries an immediate,
// which notifies the receiver of its arrival. A UD message longer than
// the path MTU is sent in fragments of one MTU, which the receiver reassembles
// by copying.
//
// # Idle connections and gather
//
// [IdleConns] are idle connections, to measure their memory and their effect on a
// ping-pong. A [Gather] has processes of its own: a root, and senders that share
// one shared receive queue of the root.
//
// # Verification
//
// Every payload is a pattern. At the end of a round the receiver compares its
// whole memory with the expected content: a wrong byte is an error. Both sides
// cycle through 4 MiB of memory, like the baseline.
package verbsbench
