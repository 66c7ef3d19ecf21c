// Package rping implements rping of librdmacm. Either side interoperates with the
// original.
//
//	o := rping.Defaults()
//	o.Client, o.Addr = true, "192.0.2.2"
//	o.Count, o.Validate = 10, true
//	o.Open = func(at netip.AddrPort) (verbs.Device, error) { ... }
//	o.Out, o.Log = os.Stdout, os.Stderr
//	err := rping.Run(ctx, o)
//
// # Protocol
//
// An RC connection by RDMA-CM, port 7174. Then, for each ping:
//
//	client  SEND        the address of its source buffer, an [Info] of 16 bytes
//	server  RDMA READ   from there
//	server  SEND        16 bytes of any content: proceed
//	client  SEND        the address of its sink buffer
//	server  RDMA WRITE  the data read, to there
//	server  SEND        proceed
//
// The client disconnects after the last ping.
//
// # Differences
//
// Waits are bounded: a peer without progress is an error after IdleTimeout. A client that
// advertises more bytes than the server's Size, or data without a NUL, is an error instead
// of an overflow. A server with Validate verifies the data it reads. Without an address
// the server listens at every IPv4 and IPv6 address of the machine.
package rping
