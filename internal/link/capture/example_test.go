package capture_test

import (
	"bytes"
	"fmt"
	"net/netip"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/capture"
	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/wire"
)

// A ring keeps the last packets, here two, until they are dumped.
func Example() {
	n := memory.New(1)
	conn, err := n.Attach(netip.MustParseAddrPort("10.0.0.1:4791"), memory.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	tap := capture.NewTap(conn, n.Now)
	ring := capture.NewRing(2)
	tap.Add(ring)

	batch := link.NewBatch(1 << 16)
	to := &wire.Path{Dst: netip.MustParseAddrPort("10.0.0.2:4791")}
	for qpn := range uint32(5) {
		wire.PutCNP(batch.Next(to, wire.CNPLen), qpn+1)
	}
	tap.WriteBatch(batch)

	var file bytes.Buffer
	if err := ring.Dump(&file); err != nil {
		fmt.Println(err)
		return
	}
	r, err := pcapgo.NewNgReader(&file, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		fmt.Println(err)
		return
	}
	for {
		frame, _, err := r.ReadPacketData()
		if err != nil {
			break
		}
		bth := wire.ParseBTH(frame[wire.IPv4Len+wire.UDPLen:])
		fmt.Println(bth.Opcode, "to qp", bth.DestQPN)
	}
	// Output:
	// CNP to qp 4
	// CNP to qp 5
}
