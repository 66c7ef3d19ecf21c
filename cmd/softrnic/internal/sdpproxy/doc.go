// Package sdpproxy forwards streams between TCP and SDP, so that programs without RDMA
// support can communicate over it: one proxy at each side.
//
//	client --TCP--> proxy ==SDP==> proxy --TCP--> server
//
//	totals, err := sdpproxy.Run(ctx, sdpproxy.Options{
//		DeviceSource: source,
//		Listen:       sockets.Addr{Network: "tcp", Host: "localhost", Port: 8080},
//		To:           sockets.Addr{Network: "sdp", Host: "192.0.2.1", Port: 7471},
//	})
//
// The proxy forwards the end of one direction while the other continues (half-close), and
// a reset as a reset.
package sdpproxy
