package adapter_test

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/verbs"
)

// A tunnel is a device whose paths carry packets of up to 1024 bytes of payload.
type tunnel struct{ verbs.Device }

func (tunnel) FitPathMTU(_ verbs.AHAttr, mtu verbs.MTU) (verbs.MTU, error) {
	if mtu > verbs.MTU1024 {
		return verbs.MTU1024, fmt.Errorf("path MTU: %w", verbs.ErrLimit)
	}
	return mtu, nil
}

func Example() {
	var peer verbs.AHAttr
	fmt.Println(adapter.FitPathMTU(tunnel{}, peer, verbs.MTU4096))
	fmt.Println(adapter.CheckPathMTU(tunnel{}, peer, verbs.MTU4096))
	fmt.Println(adapter.FitPathMTU("no adapter", peer, verbs.MTU4096))
	// Output:
	// 1024
	// path MTU: verbs: beyond the limits of the device or of the queue pair
	// 4096
}
