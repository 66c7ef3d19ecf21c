package cmtool_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/cmtool"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// A server and a client of ucmatose, here in one process.
func Example() {
	ctx := context.Background()
	dev, err := rnic.Open(rnic.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()

	server, at := cmtool.Defaults(cmtool.RC), make(chan netip.AddrPort, 1)
	server.Device = dev
	server.Listening = func(list []netip.AddrPort) { at <- list[0] }
	served := make(chan error)
	go func() { served <- cmtool.Run(ctx, server) }()

	client := cmtool.Defaults(cmtool.RC)
	client.Server = (<-at).Addr().String()
	client.Open = func(netip.AddrPort) (verbs.Device, error) { return rnic.Open(rnic.Options{}) }
	client.Out = os.Stdout
	fmt.Println(cmtool.Run(ctx, client), <-served)
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
