package oob_test

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
)

// A server accepts the first client that sends a number of one digit.
func Example() {
	ctx := context.Background()
	l, err := oob.Listen(netip.Addr{}, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	client, err := oob.Dial(ctx, netip.Addr{}, "localhost", l.Port(), time.Minute)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	if err := client.Write([]byte("7"), "say a number"); err != nil {
		fmt.Println(err)
		return
	}

	hello := func(c *oob.Conn) (int, error) {
		b := make([]byte, 1)
		if err := c.Read(b, "hear a number"); err != nil {
			return 0, err
		}
		return int(b[0] - '0'), nil
	}
	accept := func(ctx context.Context) (*oob.Conn, error) { return l.Accept(ctx, time.Minute) }
	server, number, err := oob.AcceptFirst(ctx, accept, hello, func(err error) { fmt.Println("dropped:", err) })
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	fmt.Println(number)
	// Output: 7
}
