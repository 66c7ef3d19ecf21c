package perftest_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/perftest"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// A server and a client, here in one process.
func Example() {
	ctx := context.Background()
	o := perftest.Defaults(perftest.Test{Verb: perftest.Write, Metric: perftest.Bandwidth})
	o.Iters = 100
	o.Open = func(netip.AddrPort) (verbs.Device, error) { return rnic.Open(rnic.Options{}) }

	server, port := o, make(chan int)
	server.Port = 0
	server.Listening = func(p int) { port <- p }
	served := make(chan error)
	go func() {
		_, err := perftest.Run(ctx, server)
		served <- err
	}()

	client := o
	client.Server, client.Port = "localhost", <-port
	result, err := perftest.Run(ctx, client)
	if err != nil {
		fmt.Println(err)
		return
	}
	row := result.Bandwidth[0]
	fmt.Println(row.Size, row.Iters, row.Average > 0, <-served)
	// Output: 65536 100 true <nil>
}
