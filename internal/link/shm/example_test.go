//go:build linux

package shm_test

import (
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/shm"
	"github.com/softrnic/softrnic/wire"
)

// Two links of one process, whose packets do not pass the sockets.
func Example() {
	open := func() link.Conn {
		udp, err := link.OpenUDP(link.Options{Addr: netip.MustParseAddrPort("127.0.0.1:0")})
		if err != nil {
			panic(err)
		}
		return shm.Wrap([]link.Conn{udp}, -1, nil)[0]
	}
	a, b := open(), open()
	defer a.Close()
	defer b.Close()

	batch := link.NewBatch(4096)
	clear(batch.Next(&wire.Path{Dst: b.LocalAddr()}, 64))
	if err := a.WriteBatch(batch); err != nil {
		fmt.Println(err)
		return
	}
	r := link.NewDatagrams(4)
	for n := 0; n == 0; {
		n, _ = b.ReadBatch(r)
	}
	fmt.Println(len(r.Msgs()[0].Buf), "bytes,", r.Msgs()[0].Src == a.LocalAddr())
	// Output: 64 bytes, true
}
