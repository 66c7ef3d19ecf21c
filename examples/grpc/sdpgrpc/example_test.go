package sdpgrpc_test

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/softrnic/softrnic/examples/grpc/sdpgrpc"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// A server and a client in one process.
func Example() {
	open := func() *sdp.Stack {
		dev, err := rnic.Open(rnic.Options{})
		if err != nil {
			panic(err)
		}
		stack, err := sdp.New(dev, sdp.Options{})
		if err != nil {
			panic(err)
		}
		return stack
	}
	there, here := open(), open()
	l, err := there.Listen("sdp", ":7471")
	if err != nil {
		fmt.Println(err)
		return
	}
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go server.Serve(l)

	conn, err := sdpgrpc.NewClient(here, l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := grpc_health_v1.NewHealthClient(conn).Check(context.Background(), &grpc_health_v1.HealthCheckRequest{})
	fmt.Println(answer.GetStatus(), err)
	conn.Close()
	server.GracefulStop()
	here.Close()
	there.Close()
	// Output: SERVING <nil>
}
