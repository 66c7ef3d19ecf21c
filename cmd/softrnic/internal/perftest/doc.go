// Package perftest implements ib_send_bw, ib_send_lat, ib_write_bw, ib_write_lat,
// ib_read_bw, ib_read_lat, ib_atomic_bw and ib_atomic_lat of perftest. Either side
// interoperates with the originals.
//
//	o := perftest.Defaults(perftest.Test{perftest.Write, perftest.Bandwidth})
//	o.Server = "192.0.2.2" // "" runs the server
//	o.Open = func(at netip.AddrPort) (verbs.Device, error) { ... }
//	o.Out = os.Stdout
//	result, err := perftest.Run(ctx, o)
//
// # Handshake
//
// Client and server exchange control messages over TCP, port 18515. In each step the
// client sends first and the server replies with a message of the same length:
//
//	version       16 bytes  "6.06", and after its NUL "softrnic" of an end of this project
//	parameters   256        oob.Params, text, if both versions have "softrnic"
//	page size      4        big-endian; the larger one applies
//	cache line     4        big-endian; the larger one applies
//	MTU            2        "5"; the smaller one applies
//	keys         108        text, see Keys; twice for each queue pair
//	sync         108        keys again, for each barrier between the sides
//	report     5 x 8        size, iterations, peak, average, message rate
//
// Keys carry the sender's first PSN, and the address and rkey of the memory that the
// peer may access. The steps of each test and their order are in
// runner.exchangeAddresses and the functions after it: write_lat, read_lat and
// atomic_lat begin with a sync; send tests sync before each size; the client of
// write_bw, read_bw and atomic_bw sends its report to a passive server; write_lat ends
// without a message. In write_lat the server writes first, in send_lat the client
// sends first.
//
// Newer versions (6.28 and up) negotiate more with peers of their age, but use this
// handshake with a peer that announces 6.06. Over an RDMA connection keys are
// binary, and eight bytes longer to and from 6.29 and up.
//
// # Structure
//
// Options become a plan. An endpoint has the verbs objects of a side, a bandwidthRun or
// latencyRun measures one message size, and a runner executes the steps of the test and
// writes the original's output.
//
// # Differences
//
// Each side sends a GID and requires one (-x INDEX of the originals). Waits are bounded:
// the server drops clients that are silent or send invalid messages and waits for the
// next; a test without progress fails. Lost messages of UC and UD are counted and do
// not hang the test. The standard deviation is not truncated to whole microseconds. The
// JSON is valid.
package perftest
