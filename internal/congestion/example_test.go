package congestion_test

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/congestion"
	"github.com/softrnic/softrnic/reliability"
)

func Example() {
	c := congestion.New(congestion.Auto, congestion.Config{Packet: 4352, MaxWindow: 1 << 20})
	fmt.Println("window at the start:", c.Window())
	now := reliability.Time(1)
	for range 4 { // four round trips of 100 us
		sent := c.Window()
		c.OnSent(now, sent)
		now += 100_000
		c.OnAck(now, congestion.Ack{Bytes: sent, InFlight: sent, RTT: 100_000})
	}
	fmt.Println("after four round trips:", c.Window())
	c.OnSent(now, 4352)
	fmt.Println("a notification reduces:", c.OnMark(now), c.Rate() > 0)
	// Output:
	// window at the start: 4352
	// after four round trips: 69632
	// a notification reduces: true true
}
