// Package sdpcat is netcat over SDP: what it reads goes to the peer, and what the
// peer sends is written.
//
//	err := sdpcat.Run(ctx, sdpcat.Options{
//		Place: place,
//		At:    sockets.Addr{Network: "sdp", Host: "192.0.2.1", Port: 7471},
//		In:    os.Stdin, Out: os.Stdout,
//	})
//
// The end of either direction is passed on while the other goes on.
package sdpcat
