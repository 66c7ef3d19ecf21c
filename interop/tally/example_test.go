package tally_test

import (
	"fmt"
	"os"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/softrnic/softrnic/interop/tally"
)

// A Linux host replies to a message that is too long for its receive with a NAK.
func Example() {
	f, err := os.Open("../../testdata/packets/rxe-capture/nak.pcap")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	file, err := pcapgo.NewReader(f)
	if err != nil {
		fmt.Println(err)
		return
	}
	t := tally.New(1024)
	for {
		frame, _, err := file.ReadPacketData()
		if err != nil {
			break
		}
		if err := t.Add(frame); err != nil {
			fmt.Println(err)
		}
	}
	for _, addr := range t.Addrs() {
		fmt.Printf("%v sent %d packets, %d of them NAKs\n", addr, t.From(addr).Packets, t.From(addr).OtherNaks)
	}
	// Output:
	// 198.51.100.1 sent 2 packets, 0 of them NAKs
	// 198.51.100.2 sent 1 packets, 1 of them NAKs
}
