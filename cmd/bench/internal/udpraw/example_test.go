package udpraw_test

import (
	"context"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/udpraw"
)

// Two processes move packets of 1024 bytes for some milliseconds.
func ExampleOpenBandwidth() {
	ctx := context.Background()
	b, err := udpraw.OpenBandwidth(ctx, udpraw.BandwidthOptions{Payload: 1024, Window: 8})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	f, err := b.Round(ctx, 5*time.Millisecond)
	fmt.Println(f.MBps() > 0, f.Lost, err)
	// Output: true 0 <nil>
}

// Two processes send a packet of 24 bytes to and fro.
func ExampleOpenPingPong() {
	ctx := context.Background()
	p, err := udpraw.OpenPingPong(ctx, udpraw.Netpoll, 24)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	l, err := p.Round(ctx, 100)
	fmt.Println(l.Stats().N, l.Median() > 0, err)
	// Output: 100 true <nil>
}
