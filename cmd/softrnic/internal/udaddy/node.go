package udaddy

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/cmtool"
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
	out   verbs.MR // a client's datagram
	in    verbs.MR // the receives
	ah    verbs.AH // leads to the peer

	qpn, qkey uint32 // the peer's; a server learns the number from the first datagram
	order     []int  // receives in the order of their arrival
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
	if n.qp, err = n.pd.CreateQP(verbs.QPInitAttr{Type: verbs.UD, SendCQ: n.cq, RecvCQ: n.cq, SelectiveSignaling: true,
		Cap: verbs.QPCap{MaxSendWR: sends, MaxRecvWR: receives, MaxSendSGE: 1, MaxRecvSGE: 1}}); err != nil {
		return err
	}
	if n.Count == 0 {
		return nil
	}
	if n.in, err = n.pd.RegMR(make([]byte, receives*n.recvLen()), verbs.AccessLocalWrite); err != nil || n.Server == "" {
		return err
	}
	if n.out, err = n.pd.RegMR(make([]byte, n.Size), 0); err != nil {
		return err
	}
	cmtool.Fill(n.out.Bytes(), n.index)
	return nil
}

// checkCapabilities returns an error for options beyond the limits of the device.
func (n *node) checkCapabilities(dev verbs.Device) error {
	port, err := dev.QueryPort(1)
	if err != nil {
		return err
	}
	if mtu := port.ActiveMTU.Bytes(); n.Count > 0 && n.Size > mtu {
		return option.Errorf("-S", "message_size %d is larger than active mtu %d", n.Size, mtu)
	}
	if limit := dev.QueryDevice().MaxQPWR; n.receives() > limit {
		return option.Errorf("-C", "the device takes at most %d messages at a time", limit-spare)
	}
	return nil
}

// receive is receive i, from its GRH on.
func (n *node) receive(i int) []byte { return n.in.Bytes()[i*n.recvLen() : (i+1)*n.recvLen()] }

// pair returns the queue pair for the connection manager.
func (n *node) pair() cm.UDQueuePair { return cm.UDQueuePair{QP: n.qp, Prepare: n.prepare} }

// prepare posts the receives; the manager calls it.
func (n *node) prepare(verbs.QP) error {
	for i := range n.receives() {
		if err := n.postRecv(i); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) postRecv(i int) error {
	_, err := n.qp.PostRecv([]verbs.RecvWR{{WRID: uint64(i), SGList: []verbs.SGE{n.in.SGE(i*n.recvLen(), n.recvLen())}}})
	return err
}

// reach makes the way to the peer.
func (n *node) reach(a verbs.AHAttr) (err error) {
	a.TrafficClass = n.TOS
	n.ah, err = n.pd.CreateAH(a)
	return err
}

// postSends sends all messages: the first sender its own, the other side the received ones.
func (n *node) postSends() error {
	wrs := make([]verbs.SendWR, n.Count)
	for i := range wrs {
		wr := verbs.SendWR{Opcode: verbs.WRSendWithImm, Imm: n.qp.Num(), AH: n.ah, RemoteQPN: n.qpn, RemoteQKey: n.qkey}
		if n.out != nil {
			wr.SGList = []verbs.SGE{n.out.SGE(0, n.Size)}
		} else {
			wr.SGList = []verbs.SGE{n.in.SGE(n.order[i]*n.recvLen(), n.Size)}
			wr.Flags = verbs.SendSignaled
		}
		wrs[i] = wr
	}
	_, err := n.qp.PostSend(wrs)
	return err
}

// complete waits for as many completions as there are datagrams, of sends or of
// receives, and tells beat of each.
func (n *node) complete(ctx context.Context, recv bool, beat func()) error {
	var wcs [8]verbs.WC
	for done := 0; done < n.Count; {
		k, err := rdmacm.PollWait(ctx, n.cq, wcs[:min(8, n.Count-done)])
		if err != nil {
			return rdmacm.ExplainIdle(err, "%d of %d datagrams received; this transport does not retransmit, and both sides need the same -C and -S",
				len(n.order), n.Count)
		}
		beat()
		for i := range wcs[:k] {
			ours, err := n.handleCompletion(&wcs[i])
			if err != nil {
				return err
			}
			if ours && wcs[i].Opcode.IsRecv() == recv {
				done++
			}
		}
	}
	return nil
}

// handleCompletion handles wc. It reports false for a datagram of another sender.
func (n *node) handleCompletion(wc *verbs.WC) (bool, error) {
	if err := wc.Err(); err != nil || !wc.Opcode.IsRecv() {
		return true, err
	}
	if !n.known(wc) || len(n.order) == n.Count {
		return false, n.postRecv(int(wc.WRID))
	}
	if got := int(wc.ByteLen) - grhLen; got != n.Size {
		return false, fmt.Errorf("datagram of %d bytes received, want %d; give both sides the same -S", got, n.Size)
	}
	n.qpn = wc.SrcQPN
	n.order = append(n.order, int(wc.WRID))
	return true, nil
}

// known reports whether a datagram is the peer's: it tells the number of the
// queue pair that it comes from, and always the same.
func (n *node) known(wc *verbs.WC) bool {
	return wc.Flags&verbs.WCWithImm != 0 && wc.Imm == wc.SrcQPN && (n.qpn == 0 || n.qpn == wc.SrcQPN)
}

// check verifies the received messages: the first sender against its own, the other side against
// each other.
func (n *node) check() error {
	if n.Count == 0 {
		return nil
	}
	want := n.receive(n.order[0])[grhLen:]
	skip := 0
	if n.out != nil {
		skip = min(grhLen, n.Size)
		want = slide(n.out.Bytes(), skip)
	}
	for i, at := range n.order {
		got := n.receive(at)[grhLen:]
		if bytes.Equal(got[skip:], want[skip:]) {
			continue
		}
		for at := skip; ; at++ {
			if got[at] != want[at] {
				return &DataError{n.index, i, at, got[at], want[at]}
			}
		}
	}
	return nil
}

// slide is b behind n other bytes, as much of it as fits.
func slide(b []byte, n int) []byte { return append(make([]byte, n), b[:len(b)-n]...) }

// A DataError reports a message with unexpected data.
type DataError struct {
	Connection, Message int // counted from 0
	Offset              int // of the first wrong byte
	Got, Want           byte
}

func (d *DataError) Error() string {
	return fmt.Sprintf("datagram %d has wrong data: byte %d is %#02x and should be %#02x", d.Message, d.Offset, d.Got, d.Want)
}

// Close frees all objects. Closing twice is safe.
func (n *node) Close() error {
	var errs []error
	if n.ah != nil {
		errs = append(errs, n.ah.Close())
	}
	if n.qp != nil {
		errs = append(errs, n.qp.Close())
	}
	if n.cq != nil {
		errs = append(errs, n.cq.Close())
	}
	for _, mr := range []verbs.MR{n.in, n.out} {
		if mr != nil {
			errs = append(errs, mr.Close())
		}
	}
	if n.pd != nil {
		errs = append(errs, n.pd.Close())
	}
	n.ah, n.qp, n.cq, n.in, n.out, n.pd = nil, nil, nil, nil, nil, nil
	return errors.Join(errs...)
}
