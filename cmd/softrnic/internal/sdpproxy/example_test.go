package sdpproxy_test

import (
	"context"
	"fmt"
	"io"
	"net"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/sdpproxy"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/sockets"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
)

// A TCP client and a TCP server, with two proxies between them that are connected by SDP.
func Example() {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		c, err := server.Accept()
		if err == nil {
			io.WriteString(c, "hello from afar\n")
			c.Close()
		}
	}()

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error)
	proxy := func(listen, to string) (at string) {
		where := make(chan net.Addr)
		o := sdpproxy.Options{DeviceSource: toolstest.Anywhere, Listening: func(a net.Addr) { where <- a }}
		o.Listen, _ = sockets.ParseAddr(listen)
		o.To, _ = sockets.ParseAddr(to)
		go func() {
			_, err := sdpproxy.Run(ctx, o)
			ended <- err
		}()
		return sockets.FormatAddr(<-where)
	}
	far := proxy("sdp::0", "tcp:"+server.Addr().String())
	near := proxy("tcp:127.0.0.1:0", far)

	c, err := net.Dial("tcp", near[len("tcp:"):])
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := io.ReadAll(c)
	fmt.Print(string(text))
	fmt.Println(err)
	c.Close()
	cancel()
	fmt.Println(<-ended, <-ended)
	// Output:
	// hello from afar
	// <nil>
	// <nil> <nil>
}
