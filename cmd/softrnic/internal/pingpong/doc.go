// Package pingpong implements ibv_rc_pingpong, ibv_uc_pingpong, ibv_ud_pingpong and
// ibv_srq_pingpong of libibverbs. Either side interoperates with the originals.
//
//	o := pingpong.Defaults(pingpong.RC)
//	o.Server = "192.0.2.2" // "" runs the server
//	o.Open = func(at netip.Addr) (verbs.Device, error) { ... }
//	o.Out = os.Stdout
//	result, err := pingpong.Run(ctx, o)
//
// # Handshake
//
// Client and server exchange their queue pairs over TCP, port 18515: a [Record] of 52
// bytes each way, 256 of them for srq, and then the client's "done". Between two ends of
// this project the server then sends its oob.Params, 256 bytes of text, the client replies
// with its own, and the connection stays open; an original closes it. A record carries
// the sender's first PSN. The client sends the first message; each side replies to
// each message until both have sent and received Iters messages (with srq over all
// queue pairs). No message marks the end, so each side stays open for several timeouts
// to repeat a lost acknowledgement.
//
// # Differences
//
// Each side sends a GID, which RoCE needs, and requires one (-g INDEX of the originals).
// Waits are bounded: the server drops a client that is silent or sends invalid messages
// and waits for the next; a test without progress fails. Check compares every byte
// on both sides, and a difference is an error.
package pingpong
