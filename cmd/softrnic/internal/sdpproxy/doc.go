// Package sdpproxy passes streams on between TCP and SDP, so that programs that
// know nothing of RDMA can talk over it: one proxy at each side.
//
//	client --TCP--> proxy ==SDP==> proxy --TCP--> server
//
//	totals, err := sdpproxy.Run(ctx, sdpproxy.Options{
//		Place:  place,
//		Listen: sockets.Addr{Network: "tcp", Host: "localhost", Port: 8080},
//		To:     sockets.Addr{Network: "sdp", Host: "192.0.2.1", Port: 7471},
//	})
//
// The end of one direction is passed on while the other goes on (half-close), and
// a reset as a reset.
package sdpproxy
