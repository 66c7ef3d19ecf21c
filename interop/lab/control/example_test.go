//go:build unix

package control_test

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/softrnic/softrnic/interop/lab/control"
)

func Example() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	go control.Serve(l) // usually in the guest

	c := control.Client{Addr: l.Addr().String()}
	p, err := c.Start(context.Background(), control.Command{Args: []string{"echo", "hello"}}, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ended:", p.Wait())
	// Output:
	// hello
	// ended: <nil>
}
