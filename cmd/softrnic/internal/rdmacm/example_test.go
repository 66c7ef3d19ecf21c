package rdmacm_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// A server that rejects all clients, and a client.
func Example() {
	ctx := context.Background()
	anywhere := rdmacm.DeviceSource{Open: func(netip.AddrPort) (verbs.Device, error) { return rnic.Open(rnic.Options{}) }}
	server, err := rdmacm.ListenUD(anywhere, netip.MustParseAddr("127.0.0.1"), 7174, cm.ListenOptions{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	at := server.Addrs()[0]
	go func() {
		if a, err := server.Accept(ctx); err == nil {
			_ = a.Request.Reject(0, nil)
		}
	}()

	client, err := rdmacm.OpenClient(anywhere, at.Addr(), netip.Addr{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	_, err = client.Manager.DialUD(ctx, at, cm.UDDialOptions{})
	fmt.Println(err != nil)
	// Output: true
}
