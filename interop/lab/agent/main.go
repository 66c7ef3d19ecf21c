//go:build linux

// Agent is the guest's side of the lab. The guest's init starts it with the address to listen on,
// and it runs the commands that the lab requests.
package main

import (
	"fmt"
	"net"
	"os"

	"github.com/softrnic/softrnic/interop/lab/control"
)

func main() {
	l, err := net.Listen("tcp", os.Args[1])
	if err == nil {
		fmt.Println("LAB-READY")
		err = control.Serve(l)
	}
	fmt.Println("LAB-FAILED", err)
}
