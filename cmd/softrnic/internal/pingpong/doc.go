// Package pingpong is libibverbs' ibv_rc_pingpong, ibv_uc_pingpong,
// ibv_ud_pingpong and ibv_srq_pingpong, on either side against the originals.
//
//	o := pingpong.Defaults(pingpong.RC)
//	o.Server = "192.0.2.2" // "" is the server
//	o.Open = func(at netip.Addr) (verbs.Device, error) { ... }
//	o.Out = os.Stdout
//	result, err := pingpong.Run(ctx, o)
//
// # What goes over the wire
//
// Client and server tell each other their queue pairs over TCP, port 18515: a
// [Record] of 52 bytes each way, 256 of them for srq, and then the client's
// "done". Between two ends of ours the server then tells its oob.Params, 256 bytes
// of text, the client answers with its own, and the connection stays; an original
// closes it. A record carries the sender's own first PSN. The client sends first;
// each side answers what it receives, until both have sent and received Iters
// messages (with srq all queue pairs together). Nothing is said at the end, so
// each side stays for a while to repeat a lost acknowledgement.
//
// # Differences
//
// A GID is always sent, as RoCE needs it, and the peer has to send one
// (-g INDEX of the originals). Waits end: a peer that says nothing, or talks
// nonsense, is dropped and the server waits for the next; messages that stop
// coming are an error. Check compares every byte, on both sides, and wrong data
// is an error.
package pingpong
