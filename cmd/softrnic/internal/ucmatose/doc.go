// Package ucmatose is librdmacm's ucmatose, on either side against the
// original.
//
//	o := ucmatose.Defaults()
//	o.Server, o.Connections = "192.0.2.2", 16 // "" is the server
//	o.Open = func(at netip.AddrPort) (verbs.Device, error) { ... }
//	o.Out = os.Stdout
//	err := ucmatose.Run(ctx, o)
//
// # Protocol
//
// A number of RC connections by RDMA-CM, port 7471. When all are there the
// server sends a number of messages on each; the client receives all of them
// and sends as many back, out of the memory that they have arrived in; the
// server disconnects.
//
// # Differences
//
// Waits end: what stops is an error after Idle. Payloads are checked: the
// client's messages have to be alike on a connection, and the server gets back
// what it has sent.
package ucmatose
