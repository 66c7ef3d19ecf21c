//go:build linux

// Agent is the guest's end of the lab: the guest's init starts it with the
// address to listen on, and it runs what the lab asks for.
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
