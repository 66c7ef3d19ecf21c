package fabric_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/fabric/rc"
	"github.com/softrnic/softrnic/acp/internal/fabric/ud"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rnic"
)

// host is a minimal rank that records its events.
type host struct {
	sync.Mutex
	net  fabric.Net
	card []byte // of the other rank
	done int
	err  error
}

func (h *host) DoLocked(f func()) {
	h.Lock()
	defer h.Unlock()
	f()
}
func (h *host) PeerFound(_ int, card []byte) { h.card = card }
func (h *host) PeerLost(_ int, why error)    { h.err = why }
func (h *host) HandleSignal(int, uint32)     {}
func (h *host) OpDone(_ *fabric.Op, e error) { h.done, h.err = h.done+1, e }

// pollUntil polls the network until a condition holds.
func (h *host) pollUntil(ready func() bool) {
	for there := false; !there; {
		h.DoLocked(func() {
			h.net.Flush()
			h.net.Poll()
			there = ready() || h.err != nil
		})
	}
}

// Rank 0 writes into the memory of rank 1, over both transports. The card contains the key and
// address.
func Example() {
	for _, datagrams := range []bool{false, true} {
		ms := pmi.NewLocal(2)
		var ranks [2]*host
		var mems [2]fabric.Memory
		for i := range ranks {
			dev, err := rnic.Open(rnic.Options{})
			check(err)
			defer dev.Close()
			h := &host{}
			if datagrams {
				h.net, err = ud.New(dev, h, ms[i], ud.Options{})
			} else {
				h.net, err = rc.New(dev, h, ms[i], rc.Options{})
			}
			check(err)
			defer h.net.Close(context.Background())
			mems[i], err = h.net.Register([]byte("some bytes"), true)
			check(err)
			check(h.net.Start(fmt.Appendf(nil, "%d %d", mems[i].Addr(), mems[i].RKey())))
			ranks[i] = h
		}
		go ms[1].Fence(context.Background())
		check(ms[0].Fence(context.Background()))

		h := ranks[0]
		h.DoLocked(func() { h.net.Connect(1) })
		h.pollUntil(func() bool { return h.card != nil })
		op := &fabric.Op{Kind: fabric.Put, Mem: mems[0], Off: 0, N: 4, Owner: h}
		_, err := fmt.Sscan(string(h.card), &op.Addr, &op.RKey)
		check(err)
		op.Addr += 5 // not "bytes"
		h.DoLocked(func() { h.net.Post(1, op) })
		h.pollUntil(func() bool { return h.done == 1 })
		fmt.Println(string(mems[1].Bytes()), h.err)
	}
	// Output:
	// some somes <nil>
	// some somes <nil>
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
