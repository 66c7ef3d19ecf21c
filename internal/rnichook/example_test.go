package rnichook_test

import (
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/internal/rnichook"
	"github.com/softrnic/softrnic/rnic"
)

// A device on a network in memory, with a clock of the caller.
func Example() {
	conn, err := memory.NewLive().Attach(netip.MustParseAddrPort("192.0.2.1:4791"), memory.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := int64(1)
	hooks := rnichook.Hooks{Conn: conn, Clock: func() int64 { return now }}
	dev, err := rnic.Open(rnichook.WithHooks(rnic.Options{NoService: true}, hooks))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	fmt.Println(dev.Addr(), "next timer:", rnichook.NextTimer(dev))
	// Output: 192.0.2.1:4791 next timer: 0
}
