// Package verbsbench makes traffic through the adapter between two processes
// of this machine: what experiments compare with the bare sockets of package
// udpraw.
//
// A [Pair] is two processes with a device each. On it, an experiment opens
// subjects, each with queue pairs, completion queues and memory of its own,
// and lets them take turns with their baseline:
//
//	pair, err := verbsbench.OpenPair(ctx, verbsbench.Config{MTU: 4096})
//	defer pair.Close()
//	ping, err := pair.PingPong(ctx, verbsbench.PingOptions{Op: verbsbench.RCWrite, Size: 8})
//	stream, err := pair.Stream(ctx, verbsbench.StreamOptions{Op: verbsbench.RCSend, Size: 65536})
//	v, err := measure.Alternate(ctx, 9, baseline, ping.Rounds(3000, nil))
//
// # Ping-pong
//
// Rank 0 sends, rank 1 answers, and the figure is half a round trip; for reads
// and atomics, which answer themselves, it is the whole one while rank 1's
// program sleeps. A write is seen by polling memory, a send by polling the
// completion queue. With PingOptions.Event the waiter blocks until a
// completion comes; a write then carries an immediate, because a plain one
// leaves no completion at the target.
//
// # Stream
//
// Rank 0 keeps a number of requests outstanding. RC writes and reads go to a
// sleeping program: its adapter serves them. UC and UD acknowledge nothing, so
// the receiver returns credits by small RC writes, as such applications do,
// and what did not arrive is counted as lost; a UC write carries an immediate,
// by which the receiver knows that it has arrived. A UD message longer than
// the path MTU travels in pieces of one MTU that the receiver copies to their
// places.
//
// # Crowd and gather
//
// A Crowd is idle connections, to weigh them and to have them in the way of a
// ping-pong. A [Gather] has processes of its own: a root and those who send to
// it over one shared receive queue.
//
// # Answers
//
// Every payload is a pattern, and the receiver compares all of its memory with
// what should be there when a round is over: a wrong byte is an error. Memory
// is walked through in 4 MiB on both sides, as the baseline does.
package verbsbench
