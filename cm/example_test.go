package cm_test

import (
	"context"
	"fmt"
	"log"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// side is a device with the objects of a connection.
type side struct {
	dev verbs.Device
	m   *cm.Manager
	cq  verbs.CQ
	qp  verbs.QP
	mr  verbs.MR
}

func open() (s side) {
	var err error
	s.dev, err = rnic.Open(rnic.Options{})
	check(err)
	s.m, err = cm.New(s.dev, cm.Options{})
	check(err)
	pd, err := s.dev.AllocPD()
	check(err)
	s.cq, err = s.dev.CreateCQ(16)
	check(err)
	s.qp, err = pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: s.cq, RecvCQ: s.cq,
		Cap: verbs.QPCap{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1}})
	check(err)
	s.mr, err = pd.RegMR(make([]byte, 64), verbs.AccessLocalWrite)
	check(err)
	return s
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A server sends a message to each client.
func Example() {
	ctx := context.Background()
	server, client := open(), open()

	l, err := server.m.Listen(7471, cm.ListenOptions{})
	check(err)
	go func() {
		r, err := l.Accept(ctx)
		check(err)
		conn, err := r.Accept(ctx, server.qp, cm.AcceptOptions{PrivateData: []byte("welcome")})
		check(err)
		n := copy(server.mr.Bytes(), "hello, RDMA")
		_, err = conn.QP().PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, SGList: []verbs.SGE{server.mr.SGE(0, n)}}})
		check(err)
	}()

	conn, err := client.m.Dial(ctx, l.Addr(), client.qp, cm.DialOptions{
		UDPPort:  server.m.Addr().Port(), // 4791, or another one if that is in use
		Receives: []verbs.RecvWR{{SGList: []verbs.SGE{client.mr.SGE(0, 64)}}},
	})
	check(err)
	wc := make([]verbs.WC, 1)
	_, err = client.cq.PollWait(ctx, wc)
	check(err)
	fmt.Printf("%s: %s\n", conn.PrivateData()[:7], client.mr.Bytes()[:wc[0].ByteLen])
	check(conn.Close())
	for _, s := range []side{server, client} {
		check(s.m.Close())
		check(s.dev.Close())
	}
	// Output: welcome: hello, RDMA
}
