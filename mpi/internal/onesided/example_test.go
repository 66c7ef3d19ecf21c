package onesided_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/fabric/tcp"
	"github.com/softrnic/softrnic/mpi/internal/onesided"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/rma"
	"github.com/softrnic/softrnic/mpi/pmi"
)

// Rank 0 of two ranks writes to the memory of rank 1, which makes no call meanwhile.
func Example() {
	exchanges := newExchanges(2)
	var ranks sync.WaitGroup
	for rank, manager := range pmi.NewLocal(2) {
		ranks.Go(func() {
			e, err := engine.New(rank, 2, func(h fabric.Host) (fabric.Fabric, error) { return tcp.New(h, manager, tcp.Options{}) })
			check(err)
			table := onesided.NewTable(onesided.Config{Engine: e, Direct: true})
			e.Do(func(core *protocol.Core) { core.Handler, core.OnPeerFailed = table.HandlePacket, table.OnRankLost })
			check(manager.Fence(context.Background()))

			var c comm.Comm
			c.Init(e, 2, "pair", nil, rank, 2)
			mine := make([]byte, 8)
			w, err := table.CreateWindow(&c, onesided.Memory{Bytes: mine, Kind: datatype.Uint8, Unit: 1}, exchanges[rank])
			check(err)
			if rank == 0 {
				check(w.LockRank(onesided.Exclusive, 1, false))
				put := onesided.NewPut(datatype.Of([]byte("hello")), rma.At(2))
				check(w.StartOperation(&put, 1, nil))
				check(w.UnlockRank(1)) // the put is complete at rank 1
			}
			check(w.FenceEpoch(false, true))
			if rank == 1 {
				fmt.Printf("%q\n", mine)
			}
			_, err = table.FreeWindow(w)
			check(err)
			table.Stop()
			check(e.Close(context.Background()))
		})
	}
	ranks.Wait()
	// Output: "\x00\x00hello\x00"
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// newExchanges returns the all-to-all exchanges of n ranks in one process.
func newExchanges(n int) (exchanges []func(mine, theirs []byte) error) {
	links := make([]chan []byte, n*n)
	for i := range links {
		links[i] = make(chan []byte, 1)
	}
	for rank := range n {
		exchanges = append(exchanges, func(mine, theirs []byte) error {
			part := len(mine) / n
			for r := range n {
				links[rank*n+r] <- mine[r*part:][:part]
			}
			for r := range n {
				copy(theirs[r*part:], <-links[r*n+rank])
			}
			return nil
		})
	}
	return exchanges
}
