package link_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/wire"
)

// Two links on this machine: one sends a batch of three packets, the other
// waits for them and checks their ICRC.
func Example() {
	options := link.Options{Addr: netip.MustParseAddrPort("127.0.0.1:0")}
	sender, err := link.OpenUDP(options)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sender.Close()
	receiver, err := link.OpenUDP(options)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer receiver.Close()

	batch := link.NewBatch(64 << 10)
	to := &wire.Path{Dst: receiver.LocalAddr()}
	for i, size := range []int{4112, 4112, 300} {
		pkt := batch.Next(to, size)
		pkt[12] = byte('a' + i) // headers and payload; Seal adds the ICRC
	}
	if err := sender.WriteBatch(batch); err != nil {
		fmt.Println(err)
		return
	}

	arrived := link.NewDatagrams(16)
	sealer := wire.NewICRC(sender.LocalAddr(), receiver.LocalAddr())
	for packets := 0; packets < 3; {
		if _, err := receiver.Wait(time.Second); err != nil {
			fmt.Println(err)
			return
		}
		if _, err := receiver.ReadBatch(arrived); err != nil {
			fmt.Println(err)
			return
		}
		for _, d := range arrived.Msgs() {
			for i := range d.Count() {
				pkt := d.Packet(i)
				check, _ := sealer.Check(pkt, uint16(i))
				fmt.Printf("%c: %d bytes, damaged: %v\n", pkt[12], len(pkt), check == wire.ICRCBad)
				packets++
			}
		}
	}
	// Output:
	// a: 4112 bytes, damaged: false
	// b: 4112 bytes, damaged: false
	// c: 300 bytes, damaged: false
}
