package rnic_test

import (
	"context"
	"fmt"
	"log"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// side is one end of a connection: a device, a queue pair and memory that the peer may write.
type side struct {
	dev verbs.Device
	cq  verbs.CQ
	qp  verbs.QP
	mr  verbs.MR
}

func open() side {
	dev, err := rnic.Open(rnic.Options{}) // a free loopback address, UDP port 4791
	check(err)
	pd, err := dev.AllocPD()
	check(err)
	cq, err := dev.CreateCQ(16)
	check(err)
	qp, err := pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: cq, RecvCQ: cq,
		Cap: verbs.QPCap{MaxSendWR: 16, MaxRecvWR: 16, MaxSendSGE: 1}})
	check(err)
	mr, err := pd.RegMR(make([]byte, 4096), verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
	check(err)
	return side{dev, cq, qp, mr}
}

// Two devices, here in one process, and an RDMA write from one to the other.
func Example() {
	a, b := open(), open()
	defer a.dev.Close()
	defer b.dev.Close()

	// Each end needs the other's endpoint, a line of text.
	here, err := verbs.LocalEndpoint(a.dev, a.qp, 1000)
	check(err)
	there, err := verbs.LocalEndpoint(b.dev, b.qp, 2000)
	check(err)
	check(verbs.Connect(a.qp, here, there, verbs.ConnectOptions{}))
	check(verbs.Connect(b.qp, there, here, verbs.ConnectOptions{}))

	// The immediate data notifies b of the write: it consumes a receive.
	_, err = b.qp.PostRecv([]verbs.RecvWR{{WRID: 7}})
	check(err)
	n := copy(a.mr.Bytes(), "hello, remote memory")
	_, err = a.qp.PostSend([]verbs.SendWR{{WRID: 1, Opcode: verbs.WRRDMAWriteWithImm, Flags: verbs.SendSignaled, Imm: 42,
		SGList: []verbs.SGE{a.mr.SGE(0, n)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()}})
	check(err)
	var wc [1]verbs.WC
	for _, s := range []side{a, b} {
		_, err = s.cq.PollWait(context.Background(), wc[:])
		check(err)
		fmt.Println(wc[0].Opcode, wc[0].Status)
	}
	fmt.Printf("%s, %d\n", b.mr.Bytes()[:n], wc[0].Imm)
	// Output:
	// RDMA_WRITE SUCCESS
	// RECV_RDMA_WITH_IMM SUCCESS
	// hello, remote memory, 42
}

// One goroutine serves many connections by a completion channel. Here each queue pair is connected
// to itself.
func ExampleCompChannel() {
	dev, err := rnic.Open(rnic.Options{})
	check(err)
	defer dev.Close()
	pd, err := dev.AllocPD()
	check(err)
	ch, err := dev.CreateCompChannel()
	check(err)

	names := map[verbs.CQ]string{}
	for _, name := range []string{"one", "two", "three"} {
		cq, err := ch.CreateCQ(16)
		check(err)
		names[cq] = name
		qp, err := pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1},
			SelectiveSignaling: true}) // only the receives complete
		check(err)
		self, err := verbs.LocalEndpoint(dev, qp, 1000)
		check(err)
		check(verbs.Connect(qp, self, self, verbs.ConnectOptions{}))
		_, err = qp.PostRecv([]verbs.RecvWR{{WRID: 7}})
		check(err)
		check(cq.ReqNotify(false)) // before the first completion can come
		_, err = qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend}})
		check(err)
	}

	wc := make([]verbs.WC, 4)
	for range names {
		cq, err := ch.Wait(context.Background())
		check(err)
		check(cq.ReqNotify(false))
		for cq.Len() > 0 {
			n, err := cq.Poll(wc)
			check(err)
			for _, c := range wc[:n] {
				fmt.Println(names[cq], c.Opcode, c.Status)
			}
		}
	}
	// Unordered output:
	// one RECV SUCCESS
	// two RECV SUCCESS
	// three RECV SUCCESS
}

// The device has the last packets and state transitions of each queue pair.
func ExampleDevice_InspectQP() {
	a := open()
	defer a.dev.Close()
	self, err := verbs.LocalEndpoint(a.dev, a.qp, 1000)
	check(err)
	check(verbs.Connect(a.qp, self, self, verbs.ConnectOptions{}))
	info, _ := a.dev.(*rnic.Device).InspectQP(a.qp.Num())
	for _, r := range info.History {
		fmt.Println(r.Text)
	}
	// Output:
	// state RESET
	// state INIT
	// state RTR
	// state RTS
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
