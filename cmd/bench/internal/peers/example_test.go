package peers_test

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/peers"
)

func Example() {
	if !peers.HasLibfabric() {
		fmt.Println("libfabric is not installed")
		return
	}
	f, err := peers.FabricPingPong(context.Background(), peers.RXD, 8, 1000)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("half a round trip takes %.1f us\n", f.Micros)
}
