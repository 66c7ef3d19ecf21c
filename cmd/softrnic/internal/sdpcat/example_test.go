package sdpcat_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/sdpcat"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/sockets"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
)

// A listener that writes the bytes it receives, and a peer.
func Example() {
	ctx := context.Background()
	where, ended := make(chan net.Addr), make(chan error)
	go func() {
		ended <- sdpcat.Run(ctx, sdpcat.Options{
			DeviceSource: toolstest.Anywhere, Listen: true, Addr: sockets.Addr{Network: "sdp"},
			In: strings.NewReader(""), Out: os.Stdout, Listening: func(a net.Addr) { where <- a },
		})
	}()
	at, err := sockets.ParseAddr(sockets.FormatAddr(<-where))
	if err != nil {
		fmt.Println(err)
		return
	}
	err = sdpcat.Run(ctx, sdpcat.Options{DeviceSource: toolstest.Anywhere, Addr: at, In: strings.NewReader("hello, sockets\n"), Out: os.Stdout})
	fmt.Println(err, <-ended)
	// Output:
	// hello, sockets
	// <nil> <nil>
}
