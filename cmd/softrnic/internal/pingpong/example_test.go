package pingpong_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/pingpong"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// A server and a client, here in one process.
func Example() {
	ctx := context.Background()
	o := pingpong.Defaults(pingpong.RC)
	o.Iters = 10
	o.Open = func(netip.Addr) (verbs.Device, error) { return rnic.Open(rnic.Options{}) }

	server, port := o, make(chan int)
	server.Port = 0
	server.Listening = func(p int) { port <- p }
	served := make(chan error)
	go func() {
		_, err := pingpong.Run(ctx, server)
		served <- err
	}()

	client := o
	client.Server, client.Port = "localhost", <-port
	result, err := pingpong.Run(ctx, client)
	fmt.Println(result.Bytes, "bytes", err, <-served)
	// Output: 81920 bytes <nil> <nil>
}
