// Package rping is librdmacm's rping, on either side against the original.
//
//	o := rping.Defaults()
//	o.Client, o.Addr = true, "192.0.2.2"
//	o.Count, o.Validate = 10, true
//	o.Open = func(at netip.AddrPort) (verbs.Device, error) { ... }
//	o.Out, o.Log = os.Stdout, os.Stderr
//	err := rping.Run(ctx, o)
//
// # What goes over the wire
//
// An RC connection by RDMA-CM, port 7174. Then, for every ping:
//
//	client  SEND        where its source buffer is, an [Info] of 16 bytes
//	server  RDMA READ   from there
//	server  SEND        16 bytes whose content does not matter: go on
//	client  SEND        where its sink buffer is
//	server  RDMA WRITE  what it has read, to there
//	server  SEND        go on
//
// The client disconnects after the last one.
//
// # Differences
//
// Waits end: a peer that stops is an error after Idle. A client that advertises
// more than fits, or text without an end, is an error and no overflow. A server
// with Validate checks what it reads, too. Without an address the server waits
// at every address of the machine, by IPv4 and IPv6.
package rping
