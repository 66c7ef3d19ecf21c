package ownaddr_test

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/ownaddr"
)

func Example() {
	fmt.Println(ownaddr.Device(3).Port(), ownaddr.Host(3).IsLoopback())
	// Output: 4791 true
}
