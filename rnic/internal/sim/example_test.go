package sim_test

import (
	"fmt"

	"github.com/softrnic/softrnic/rnic/internal/sim"
	"github.com/softrnic/softrnic/verbs"
)

// An RDMA write of two packets, of which the first is lost once.
func Example() {
	s := sim.New(1)
	trace := s.Record()
	var ends [2]sim.Endpoint
	var memory [2]verbs.MR
	var cqs [2]verbs.CQ
	for i, o := range []sim.DeviceOptions{{Name: "a", Impair: "drop 1st WRITE_FIRST"}, {Name: "b", OneByOne: true}} {
		dev, err := s.AddDevice(o)
		if err != nil {
			panic(err)
		}
		defer dev.Close()
		pd, _ := dev.AllocPD()
		memory[i], _ = pd.RegMR(make([]byte, 8192), verbs.AccessLocalWrite|verbs.AccessRemoteWrite|verbs.AccessZeroBased)
		cqs[i], _ = dev.CreateCQ(16)
		qp, err := pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: cqs[i], RecvCQ: cqs[i],
			Cap: verbs.QPCap{MaxSendWR: 16, MaxRecvWR: 16, MaxSendSGE: 1, MaxRecvSGE: 1}})
		if err != nil {
			panic(err)
		}
		trace.NameQP(dev, qp.Num(), o.Name)
		trace.NameKey(dev, memory[i].RKey(), o.Name)
		ends[i] = sim.Endpoint{Device: dev, QP: qp, PSN: 100}
	}
	ends[1].HideRecvBuffer = true // otherwise a splits the write, see docs/queue-pair.md
	if err := s.Connect(ends[0], ends[1]); err != nil {
		panic(err)
	}

	copy(memory[0].Bytes(), "hello")
	ends[0].QP.PostSend([]verbs.SendWR{{WRID: 1, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled,
		SGList: []verbs.SGE{memory[0].SGE(0, 5000)}, RemoteAddr: memory[1].Addr(), RKey: memory[1].RKey()}})
	s.Run(nil)

	var wc [1]verbs.WC
	n, _ := cqs[0].Poll(wc[:])
	fmt.Printf("%s, %d completion: %v\n", memory[1].Bytes()[:5], n, wc[0].Status)
	fmt.Print(trace)
	// Output:
	// hello, 1 completion: SUCCESS
	//      0.000 ms  a > b    RC_WRITE_FIRST          psn 100  at 0 len 5000 key b  4096 bytes  LOST
	//      0.000 ms  a > b    RC_WRITE_LAST           psn 101  904 bytes  ackreq  (out_of_sequence)
	//      0.001 ms  b > a    RC_ACKNOWLEDGE          psn 100  NAK PSN sequence error, msn 0
	//      0.002 ms  a > b    RC_WRITE_FIRST          psn 100  at 0 len 5000 key b  4096 bytes
	//      0.002 ms  a > b    RC_WRITE_LAST           psn 101  904 bytes  ackreq
	//      0.003 ms  b > a    RC_ACKNOWLEDGE          psn 101  ACK with 0 credits, msn 1
}
