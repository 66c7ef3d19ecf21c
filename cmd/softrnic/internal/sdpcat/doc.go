// Package sdpcat is netcat over SDP: it sends its input to the peer and writes the peer's
// data to its output.
//
//	err := sdpcat.Run(ctx, sdpcat.Options{
//		DeviceSource: source,
//		Addr:         sockets.Addr{Network: "sdp", Host: "192.0.2.1", Port: 7471},
//		In:           os.Stdin, Out: os.Stdout,
//	})
//
// The end of one direction half-closes the connection; the other continues.
package sdpcat
