package reliability_test

import (
	"fmt"
	"time"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/wire"
)

// A responder receives packets 7, 9 and 8: it sends one NAK for the gap, and packet 9 must be
// retransmitted.
func Example_responder() {
	var recv reliability.Receiver
	var acks reliability.Acks
	recv.Reset(7)
	for _, psn := range []wire.PSN{7, 9, 8, 9} {
		switch recv.Classify(psn) {
		case reliability.InOrder:
			recv.Advance(1)
			acks.ScheduleAck(psn, true)
		case reliability.Gap:
			acks.ScheduleNAK(wire.NakPSNSequence, recv.Expected())
		}
		if psn == 9 { // a batch ends
			s, at := acks.Pop(wire.CreditUnlimited)
			fmt.Println(s, "at", at)
		}
	}
	// Output:
	// NAK PSN sequence error at 8
	// ACK at 9
}

// A requester without a response: retry_cnt retries, then failure.
func ExampleRetry() {
	var retry reliability.Retry
	var rtt reliability.RTT
	retry.Configure(int64(67*time.Millisecond), 2, reliability.RNRForever, false)
	retry.OnSent(1, true, &rtt)
	for {
		now := retry.Deadline()
		action := retry.OnTimer(now, &rtt)
		fmt.Println(time.Duration(now).Round(time.Millisecond), action == reliability.GoBack)
		if action == reliability.GiveUp {
			break
		}
	}
	// Output:
	// 67ms true
	// 201ms true
	// 469ms false
}

// A requester whose peer has two receives: the first message is a probe, its acknowledgement brings
// the credits, and one more may be sent as a probe again.
func ExampleCredits() {
	var c reliability.Credits
	c.Reset(false)
	start := func() (n int) {
		for ; c.Allows(true); n++ {
			c.StartMessage(true)
		}
		return n
	}
	fmt.Println("at first:", start())
	c.Update(wire.CreditCode(2), 1) // one message complete, two receives left
	fmt.Println("after the answer:", start())
	// Output:
	// at first: 1
	// after the answer: 3
}

// A responder serves two reads at a time and can replay them.
func ExampleResources() {
	var res reliability.Resources
	res.Reset(2) // max_dest_rd_atomic
	for psn := wire.PSN(10); psn < 40; psn += 10 {
		r := res.Add()
		r.First, r.Last = psn, psn+9
		res.ScheduleResponse(r, r.First, r.Last, false)
		for !res.OnPacketSent(r) {
		}
	}
	fmt.Println(res.FindByPSN(15) == nil, res.FindByPSN(25).First, res.FindByPSN(39).First)
	// Output: true 20 30
}
