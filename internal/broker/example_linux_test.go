package broker_test

import (
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/internal/broker"
)

// Two members of one address, here in one process.
func Example() {
	addr := netip.MustParseAddrPort("127.66.0.1:4791")
	a, err := broker.Join(addr)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	b, err := broker.Join(addr)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	fmt.Println(a.Slot(), b.Slot())
	first, count := broker.QPNRange(b.Slot())
	fmt.Printf("queue pairs 0x%x to 0x%x\n", first, first+count-1)
	fmt.Println(a.Register(7001))
	fmt.Println(b.Register(7001))
	// Output:
	// 1 2
	// queue pairs 0x80000 to 0xbffff
	// true <nil>
	// false <nil>
}
