package datagram_test

import (
	"context"
	"fmt"
	"log"

	"github.com/softrnic/softrnic/internal/datagram"
	"github.com/softrnic/softrnic/internal/nack"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A message from one port to another.
func Example() {
	var ports [2]*datagram.Port
	got := ""
	for i := range ports {
		dev, err := rnic.Open(rnic.Options{})
		check(err)
		defer dev.Close()
		ports[i], err = datagram.Open(dev, datagram.Options{Self: uint32(i), Epoch: 1, Receives: 8, Packets: 8,
			OnDatagram: func(now nack.Time, _ *verbs.WC, _, packet []byte) {
				ports[i].Core.HandlePacket(now, 0, packet, func(m []byte) { got = string(m) })
			}})
		check(err)
	}
	for i, p := range ports {
		check(p.ConnectPeer(0, ports[1-i].Address()))
	}
	check(ports[0].Core.Send(ports[0].Now(), 0, []byte("hello, "), []byte("datagrams")))
	ports[0].SendPending(ports[0].Now())
	wcs := make([]verbs.WC, 8)
	for got == "" {
		n, err := ports[1].CQ.PollWait(context.Background(), wcs)
		check(err)
		ports[1].HandleCompletions(wcs[:n])
	}
	fmt.Println(got)
	for _, p := range ports {
		check(p.Close())
	}
	// Output: hello, datagrams
}
