package impair_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/impair"
	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/wire"
)

func Example() {
	spec, err := impair.Parse("delay 2ms; drop 3rd CNP")
	if err != nil {
		fmt.Println(err)
		return
	}
	n := memory.New(1)
	inner, _ := n.Attach(netip.MustParseAddrPort("10.0.0.1:4791"), memory.Options{})
	peer, _ := n.Attach(netip.MustParseAddrPort("10.0.0.2:4791"), memory.Options{})
	conn, err := impair.New(inner, spec, n.Now)
	if err != nil {
		fmt.Println(err)
		return
	}

	batch := link.NewBatch(1 << 16)
	to := &wire.Path{Dst: peer.LocalAddr()}
	for qpn := range uint32(5) {
		wire.PutCNP(batch.Next(to, wire.CNPLen), qpn+1)
	}
	conn.WriteBatch(batch)

	n.AdvanceTo(conn.NextDue())
	conn.Flush(n.Now())
	t, _ := n.NextEvent()
	n.AdvanceTo(t)
	r := link.NewDatagrams(8)
	peer.ReadBatch(r)
	for _, d := range r.Msgs() {
		for i := range d.Count() {
			fmt.Println(time.Duration(n.Now()), "qp", wire.ParseBTH(d.Packet(i)).DestQPN)
		}
	}
	// Output:
	// 2.001ms qp 1
	// 2.001ms qp 2
	// 2.001ms qp 4
	// 2.001ms qp 5
}

func ExampleParse() {
	spec, err := impair.Parse("loss 1% delay 2ms 0.5ms; drop 3rd READ_RESPONSE of qp 7")
	fmt.Println(spec, err)
	_, err = impair.Parse("drop 3th ACK")
	fmt.Println(err)
	// Output:
	// loss 1% delay 2ms 500us; drop 3rd READ_RESPONSE of qp 7 <nil>
	// impair: "3th" at byte 5 of "drop 3th ACK": want an ordinal such as 1st, 2nd or 3rd
}
