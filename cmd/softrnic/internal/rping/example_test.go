package rping_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/rping"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// A server and a client, here in one process.
func Example() {
	ctx := context.Background()
	dev, err := rnic.Open(rnic.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()

	server, at := rping.Defaults(), make(chan netip.AddrPort, 1)
	server.Device = dev
	server.Listening = func(list []netip.AddrPort) { at <- list[0] }
	served := make(chan error)
	go func() { served <- rping.Run(ctx, server) }()

	client := rping.Defaults()
	client.Client, client.Addr, client.Count = true, (<-at).Addr().String(), 2
	client.Verbose, client.Validate, client.Size = true, true, 30
	client.Open = func(netip.AddrPort) (verbs.Device, error) { return rnic.Open(rnic.Options{}) }
	client.Out = os.Stdout
	fmt.Println(rping.Run(ctx, client), <-served)
	// Output:
	// ping data: rdma-ping-0: ABCDEFGHIJKLMNOP
	// ping data: rdma-ping-1: BCDEFGHIJKLMNOPQ
	// <nil> <nil>
}
