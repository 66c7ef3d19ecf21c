package memory_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/wire"
)

func Example() {
	n := memory.New(1)
	a, err := n.Attach(netip.MustParseAddrPort("10.0.0.1:4791"), memory.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := n.Attach(netip.MustParseAddrPort("10.0.0.2:4791"), memory.Options{Delay: time.Millisecond})
	if err != nil {
		fmt.Println(err)
		return
	}

	batch := link.NewBatch(1 << 16)
	to := &wire.Path{Dst: b.LocalAddr()}
	for range 3 {
		wire.PutCNP(batch.Next(to, wire.CNPLen), 7)
	}
	a.WriteBatch(batch)

	r := link.NewDatagrams(8)
	for t, ok := n.NextEvent(); ok; t, ok = n.NextEvent() {
		n.AdvanceTo(t)
		b.ReadBatch(r)
		for _, d := range r.Msgs() {
			fmt.Printf("%v: %d packets from %v\n", time.Duration(n.Now()), d.Count(), d.Src)
		}
	}
	// Output: 1ms: 3 packets from 10.0.0.1:4791
}
