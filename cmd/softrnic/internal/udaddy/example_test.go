package udaddy_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/udaddy"
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

	server, at := udaddy.Defaults(), make(chan netip.AddrPort, 1)
	server.Device = dev
	server.Listening = func(list []netip.AddrPort) { at <- list[0] }
	served := make(chan error)
	go func() { served <- udaddy.Run(ctx, server) }()

	client := udaddy.Defaults()
	client.Server = (<-at).Addr().String()
	client.Open = func(netip.AddrPort) (verbs.Device, error) { return rnic.Open(rnic.Options{}) }
	client.Out = os.Stdout
	fmt.Println(udaddy.Run(ctx, client), <-served)
	// Output:
	// udaddy: starting client
	// udaddy: connecting
	// initiating data transfers
	// receiving data transfers
	// data transfers complete
	// test complete
	// return status 0
	// <nil> <nil>
}
