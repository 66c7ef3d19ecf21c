package hostaddr_test

import (
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/internal/hostaddr"
)

func ExampleParse() {
	list, err := hostaddr.Parse("192.0.2.1:4791-4799, 127.0.0.0/8")
	fmt.Println(len(list), list[0].First, list[0].Last, list[1].Prefix, err)
	// Output: 2 4791 4799 127.0.0.0/8 <nil>
}

func ExampleCanonical() {
	fmt.Println(hostaddr.Canonical(netip.MustParseAddr("::ffff:192.0.2.1")))
	// Output: 192.0.2.1
}
