// Package udaddy is librdmacm's udaddy, on either side against the original.
//
//	o := udaddy.Defaults()
//	o.Server, o.Connections = "192.0.2.2", 16 // "" is the server
//	o.Open = func(at netip.AddrPort) (verbs.Device, error) { ... }
//	o.Out = os.Stdout
//	err := udaddy.Run(ctx, o)
//
// # Protocol
//
// SIDR_REQ and SIDR_REP of RDMA-CM, port 7174, tell the client a queue pair of
// the server for each of its own. The client sends datagrams there, each with
// the number of its queue pair as immediate data. When all have arrived the
// server sends as many back: its receive buffer from the start, which is the 40
// bytes of the GRH and then as much of the client's datagram as fits.
//
// # Differences
//
// Waits end: datagrams that stop coming are an error after Idle, which says how
// many there were. Payloads are checked: a server's datagrams have to be alike,
// and the client gets back what it has sent. Datagrams of strangers do not
// count.
package udaddy
