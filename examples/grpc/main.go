// The command is a server and client of gRPC's health service over SDP. On one machine:
//
//	go run . -listen :7471  # prints its address
//	go run . -check ADDRESS # ADDRESS is the address printed by the server
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/softrnic/softrnic/examples/grpc/sdpgrpc"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

func main() {
	listen := flag.String("listen", "", "serve at an `address`, for example :7471")
	check := flag.String("check", "", "query the health of the server at an `address`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *listen, *check, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, listen, check string, out io.Writer) error {
	if (listen == "") == (check == "") {
		return fmt.Errorf("give -listen or -check")
	}
	dev, err := rnic.Open(rnic.Options{}) // at the address SOFTRNIC_ADDR, or on the loopback interface
	if err != nil {
		return err
	}
	defer dev.Close()
	stack, err := sdp.New(dev, sdp.Options{})
	if err != nil {
		return err
	}
	defer stack.Close()
	if listen != "" {
		return serve(ctx, stack, listen, out)
	}
	return checkHealth(ctx, stack, check, out)
}

// serve serves until ctx ends.
func serve(ctx context.Context, stack *sdp.Stack, addr string, out io.Writer) error {
	l, err := stack.Listen("sdp", addr)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, l.Addr())
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	defer context.AfterFunc(ctx, server.GracefulStop)()
	return server.Serve(l)
}

// checkHealth queries the health of the server at addr.
func checkHealth(ctx context.Context, stack *sdp.Stack, addr string, out io.Writer) error {
	conn, err := sdpgrpc.NewClient(stack, addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	reply, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, reply.Status)
	return nil
}
