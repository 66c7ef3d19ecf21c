package cmtool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/internal/closing"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/verbs"
)

// A node has the verbs objects of one side of a connection.
type node struct {
	*Options
	index int
	pd    verbs.PD
	cq    verbs.CQ
	qp    verbs.QP
	in    verbs.MR // the receive buffers
	out   verbs.MR // the message of the side that sends first

	adapter   netip.AddrPort // a client's peer
	conn      *cm.Conn       // RC, once established
	ah        verbs.AH       // UD: leads to the peer
	qpn, qkey uint32         // UD: of the peer; a server learns the number from the first datagram

	sent     int   // completed sends
	received []int // receive buffers with a message, in the order of arrival
}

// newNode creates the queue pair of connection i. The caller must close it.
func newNode(o *Options, i int, dev verbs.Device) (*node, error) {
	n := &node{Options: o, index: i}
	if err := n.open(dev); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *node) open(dev verbs.Device) (err error) {
	if err := n.checkCapabilities(dev); err != nil {
		return err
	}
	sends, receives := max(n.Count, 1), max(n.receives(), 1)
	if n.pd, err = dev.AllocPD(); err != nil {
		return err
	}
	if n.cq, err = dev.CreateCQ(sends + receives); err != nil {
		return err
	}
	kind := verbs.RC
	if n.Service == UD {
		kind = verbs.UD
	}
	if n.qp, err = n.pd.CreateQP(verbs.QPInitAttr{Type: kind, SendCQ: n.cq, RecvCQ: n.cq,
		Cap: verbs.QPCap{MaxSendWR: sends, MaxRecvWR: receives, MaxSendSGE: 1, MaxRecvSGE: 1}}); err != nil {
		return err
	}
	if n.Count == 0 {
		return nil
	}
	if n.in, err = n.pd.RegMR(make([]byte, receives*n.recvLen()), verbs.AccessLocalWrite); err != nil || !n.sendsFirst() {
		return err
	}
	if n.out, err = n.pd.RegMR(make([]byte, n.Size), 0); err != nil {
		return err
	}
	for i, b := 0, n.out.Bytes(); i < len(b); i++ {
		b[i] = byte(n.index + i + i>>8)
	}
	return nil
}

// checkCapabilities returns an error for options beyond the limits of the device.
func (n *node) checkCapabilities(dev verbs.Device) error {
	port, err := dev.QueryPort(1)
	if err != nil {
		return err
	}
	if mtu := port.ActiveMTU.Bytes(); n.Service == UD && n.Count > 0 && n.Size > mtu {
		return option.Errorf("-S", "message_size %d is larger than active mtu %d", n.Size, mtu)
	}
	if limit := dev.QueryDevice().MaxQPWR; n.receives() > limit {
		return option.Errorf("-C", "the device takes at most %d messages at a time", limit-n.spareReceives())
	}
	return nil
}

// message returns the message in receive buffer i.
func (n *node) message(i int) []byte {
	return n.in.Bytes()[i*n.recvLen():][n.headerLen():n.recvLen()]
}

// postReceives posts all receives; the connection manager calls it.
func (n *node) postReceives(verbs.QP) error {
	for i := range n.receives() {
		if err := n.postReceive(i); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) postReceive(i int) error {
	_, err := n.qp.PostRecv([]verbs.RecvWR{{WRID: uint64(i), SGList: []verbs.SGE{n.in.SGE(i*n.recvLen(), n.recvLen())}}})
	return err
}

// postSends sends all messages: the first sender its own, the other side its receive buffers from
// the start.
func (n *node) postSends() error {
	wrs := make([]verbs.SendWR, n.Count)
	for i := range wrs {
		wr := verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendSignaled}
		if n.Service == UD {
			wr.Opcode, wr.Imm = verbs.WRSendWithImm, n.qp.Num()
			wr.AH, wr.RemoteQPN, wr.RemoteQKey = n.ah, n.qpn, n.qkey
		}
		if n.out != nil {
			wr.SGList = []verbs.SGE{n.out.SGE(0, n.Size)}
		} else {
			wr.SGList = []verbs.SGE{n.in.SGE(n.received[i]*n.recvLen(), n.Size)}
		}
		wrs[i] = wr
	}
	_, err := n.qp.PostSend(wrs)
	return err
}

// awaitSends waits until all messages are sent. It calls beat at each progress.
func (n *node) awaitSends(ctx context.Context, beat func()) error {
	return n.await(ctx, "sent", func() int { return n.sent }, beat)
}

// awaitReceives waits until all messages are received, and checks them. It calls beat at each
// progress.
func (n *node) awaitReceives(ctx context.Context, beat func()) error {
	if err := n.await(ctx, "received", func() int { return len(n.received) }, beat); err != nil {
		return err
	}
	return n.check()
}

// await handles completions until done returns Count.
func (n *node) await(ctx context.Context, verb string, done func() int, beat func()) error {
	hint := "give both sides the same -C"
	if n.Service == UD {
		hint = "this transport does not retransmit, and both sides need the same -C and -S"
	}
	var wcs [8]verbs.WC
	for done() < n.Count {
		k, err := rdmacm.PollWait(ctx, n.cq, wcs[:])
		if err == nil {
			beat()
		}
		for i := 0; i < k && err == nil; i++ {
			err = n.handleCompletion(ctx, &wcs[i])
		}
		if err != nil {
			return rdmacm.ExplainIdle(err, "%d of %d %ss %s; %s", done(), n.Count, n.Service.message(), verb, hint)
		}
	}
	return nil
}

// handleCompletion counts a completion. It posts the receive of another sender's datagram again.
func (n *node) handleCompletion(ctx context.Context, wc *verbs.WC) error {
	err := wc.Err()
	if n.Service == RC {
		err = n.checkRC(ctx, wc)
	}
	if err != nil {
		return err
	}
	if !wc.Opcode.IsRecv() {
		n.sent++
		return nil
	}
	if n.Service == UD && !n.fromPeer(wc) {
		return n.postReceive(int(wc.WRID))
	}
	if got := int(wc.ByteLen) - n.headerLen(); got != n.Size {
		return fmt.Errorf("%s of %d bytes received, want %d; give both sides the same -S", n.Service.message(), got, n.Size)
	}
	n.qpn = wc.SrcQPN
	n.received = append(n.received, int(wc.WRID))
	return nil
}

// check verifies the received messages: the first sender compares them with its own, as they come
// back, the other side with each other.
func (n *node) check() error {
	want, skip := n.message(n.received[0]), 0
	if n.out != nil {
		skip = min(n.headerLen(), n.Size)
		want = append(make([]byte, skip), n.out.Bytes()[:n.Size-skip]...)
	}
	for i, buffer := range n.received {
		got := n.message(buffer)
		if bytes.Equal(got[skip:], want[skip:]) {
			continue
		}
		for at := skip; ; at++ {
			if got[at] != want[at] {
				return &DataError{n.Service, n.index, i, at, got[at], want[at]}
			}
		}
	}
	return nil
}

// A DataError reports a message with unexpected data.
type DataError struct {
	Service             Service
	Connection, Message int // counted from 0
	Offset              int // of the first wrong byte
	Got, Want           byte
}

// Error implements error.
func (d *DataError) Error() string {
	return fmt.Sprintf("%s %d has wrong data: byte %d is %#02x and should be %#02x", d.Service.message(), d.Message, d.Offset, d.Got, d.Want)
}

// Close frees all objects. Closing twice is safe.
func (n *node) Close() error {
	return closing.All[io.Closer](n.ah, n.qp, n.cq, n.in, n.out, n.pd)
}
