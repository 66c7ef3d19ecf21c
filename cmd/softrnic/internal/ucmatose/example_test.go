package ucmatose_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/ucmatose"
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

	server, at := ucmatose.Defaults(), make(chan netip.AddrPort, 1)
	server.Device = dev
	server.Listening = func(list []netip.AddrPort) { at <- list[0] }
	served := make(chan error)
	go func() { served <- ucmatose.Run(ctx, server) }()

	client := ucmatose.Defaults()
	client.Server = (<-at).Addr().String()
	client.Open = func(netip.AddrPort) (verbs.Device, error) { return rnic.Open(rnic.Options{}) }
	client.Out = os.Stdout
	fmt.Println(ucmatose.Run(ctx, client), <-served)
	// Output:
	// cmatose: starting client
	// cmatose: connecting
	// receiving data transfers
	// sending replies
	// data transfers complete
	// test complete
	// return status 0
	// <nil> <nil>
}
