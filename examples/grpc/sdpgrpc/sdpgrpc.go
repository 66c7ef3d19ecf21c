// Package sdpgrpc runs gRPC over RDMA, by sockets of package sdp.
//
// A server needs only a listener:
//
//	l, err := stack.Listen("sdp", ":7471")
//	err = server.Serve(l)
//
// A client dials by the stack:
//
//	conn, err := sdpgrpc.NewClient(stack, "192.0.2.1:7471", grpc.WithTransportCredentials(insecure.NewCredentials()))
//
// Both are gRPC's own types: credentials, interceptors, streams, keepalive and other features work as over
// TCP.
package sdpgrpc

import (
	"context"
	"net"

	"google.golang.org/grpc"

	"github.com/softrnic/softrnic/sdp"
)

// WithStack returns a DialOption that makes a client dial by SDP.
func WithStack(s *sdp.Stack) grpc.DialOption {
	return grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		return s.DialContext(ctx, "sdp", addr)
	})
}

// NewClient returns a client of the server at addr, the address of an adapter and a port: "192.0.2.1:7471".
// Names are resolved by the stack when it dials.
func NewClient(s *sdp.Stack, addr string, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+addr, append([]grpc.DialOption{WithStack(s)}, opts...)...)
}
