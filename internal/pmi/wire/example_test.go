package wire_test

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/pmi/wire"
)

func Example() {
	put := wire.New("kvs-put", "key", "P0-card", "value", "192.0.2.1:4791")
	b, err := put.Append(nil, wire.PMI2)
	fmt.Printf("%q %v\n", b, err)

	m, n, err := wire.Next(b)
	fmt.Println(m, n == len(b), err)

	nodes, err := wire.ParseMapping("(vector,(0,2,3))", 6)
	fmt.Println(nodes, err)
	// Output:
	// "    45cmd=kvs-put;key=P0-card;value=192.0.2.1:4791;" <nil>
	// cmd=kvs-put key=P0-card value=192.0.2.1:4791 true <nil>
	// [0 0 0 1 1 1] <nil>
}
