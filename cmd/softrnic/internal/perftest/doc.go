// Package perftest is perftest's ib_send_bw, ib_send_lat, ib_write_bw,
// ib_write_lat, ib_read_bw, ib_read_lat, ib_atomic_bw and ib_atomic_lat, on
// either side against the originals.
//
//	o := perftest.Defaults(perftest.Test{perftest.Write, perftest.Bandwidth})
//	o.Server = "192.0.2.2" // "" is the server
//	o.Open = func(at netip.AddrPort) (verbs.Device, error) { ... }
//	o.Out = os.Stdout
//	result, err := perftest.Run(ctx, o)
//
// # What goes over the wire
//
// Client and server talk over TCP, port 18515. In each step of the handshake
// the client tells first and the server answers with a message of the same
// length:
//
//	version       16 bytes  "6.06", and behind its NUL "softrnic" of an end of ours
//	terms        256        oob.Params, text, if both versions have "softrnic"
//	page size      4        big-endian; the larger counts
//	cache line     4        big-endian; the larger counts
//	MTU            2        "5"; the smaller counts
//	keys         108        text, see Keys; for each queue pair, twice
//	sync         108        keys again, as often as the sides wait for each other
//	report     5 x 8        size, iterations, peak, average, message rate
//
// Keys carry the sender's own first PSN, the address and the rkey of the memory
// that the peer may use. Which steps a test has, and in which order, is in
// runner.exchangeAddresses and behind it: write_lat, read_lat and atomic_lat begin with a
// sync, send tests wait for each other before each size, the client of
// write_bw, read_bw and atomic_bw tells its report to a server that sleeps, and
// write_lat ends without a word. There the server writes first; in send_lat the
// client sends first.
//
// Newer perftests (6.28 and up) negotiate more with peers of their age, but
// speak this with one that announces 6.06. Over an RDMA connection keys are
// binary, and to and from 6.29 and up eight bytes longer.
//
// # Structure
//
// Options become a plan, an end is what a side has of the verbs, traffic is a
// bandwidth run, rounds a latency run. A runner puts them in the order of the
// test and writes what the original writes.
//
// # Differences
//
// A GID is always sent, and has to come (-x INDEX of the originals). Waits end:
// clients that say nothing, or nonsense, are dropped and the server waits for
// the next; a test in which nothing happens any more fails. Messages of UC and
// UD that get lost are counted, and do not hang the test. The standard
// deviation is not truncated to whole microseconds. JSON is valid.
package perftest
