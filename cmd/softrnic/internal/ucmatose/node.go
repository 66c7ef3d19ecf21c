package ucmatose

import (
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
	index        int
	pd           verbs.PD
	sends, recvs verbs.CQ
	qp           verbs.QP
	out          verbs.MR // a server's message
	in           verbs.MR // Count messages, in the order of their arrival
	conn         *cm.Conn // once there is one
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
	depth := max(n.Count, 1)
	if limit := dev.QueryDevice().MaxQPWR; depth > limit {
		return option.Errorf("-C", "the device takes at most %d messages at a time", limit)
	}
	if n.pd, err = dev.AllocPD(); err != nil {
		return err
	}
	if n.sends, err = dev.CreateCQ(depth); err != nil {
		return err
	}
	if n.recvs, err = dev.CreateCQ(depth); err != nil {
		return err
	}
	if n.qp, err = n.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: n.sends, RecvCQ: n.recvs,
		Cap: verbs.QPCap{MaxSendWR: depth, MaxRecvWR: depth, MaxSendSGE: 1, MaxRecvSGE: 1}}); err != nil {
		return err
	}
	if n.Count == 0 {
		return nil
	}
	if n.in, err = n.pd.RegMR(make([]byte, n.Count*n.Size), verbs.AccessLocalWrite); err != nil || n.Server != "" {
		return err
	}
	n.out, err = n.pd.RegMR(make([]byte, n.Size), 0)
	if err == nil {
		cmtool.Fill(n.out.Bytes(), n.index)
	}
	return err
}

// message is message i of those that came.
func (n *node) message(i int) []byte { return n.in.Bytes()[i*n.Size : (i+1)*n.Size] }

// prepare posts the receives; the manager calls it.
func (n *node) prepare(verbs.QP) error {
	wrs := make([]verbs.RecvWR, n.Count)
	for i := range wrs {
		wrs[i] = verbs.RecvWR{WRID: uint64(i), SGList: []verbs.SGE{n.in.SGE(i*n.Size, n.Size)}}
	}
	_, err := n.qp.PostRecv(wrs)
	return err
}

// connection returns the attributes of a connection.
func (n *node) connection() verbs.ConnectOptions {
	return verbs.ConnectOptions{RetryCnt: 5, MaxRdAtomic: 1, MaxDestRdAtomic: 1, TrafficClass: n.TOS, Timeout: n.AckTimeout.ConnectTimeout()}
}

// postSends sends all messages: the first sender its own, the other side the received ones.
func (n *node) postSends() error {
	wrs := make([]verbs.SendWR, n.Count)
	for i := range wrs {
		from := n.in.SGE(i*n.Size, n.Size)
		if n.out != nil {
			from = n.out.SGE(0, n.Size)
		}
		wrs[i] = verbs.SendWR{WRID: uint64(i), Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{from}}
	}
	_, err := n.qp.PostSend(wrs)
	return err
}

// complete waits for as many completions as there are messages, and tells beat
// of each.
func (n *node) complete(ctx context.Context, cq verbs.CQ, what string, beat func()) error {
	var wcs [8]verbs.WC
	for done := 0; done < n.Count; {
		k, err := rdmacm.PollWait(ctx, cq, wcs[:])
		if err == nil {
			beat()
		}
		for i := 0; i < k && err == nil; i++ {
			err = n.judge(ctx, &wcs[i])
		}
		if err != nil {
			return rdmacm.ExplainIdle(err, "%d of %d messages %s; give both sides the same -C", done, n.Count, what)
		}
		done += k
	}
	return nil
}

// judge judges a completion. It is flushed if the connection has ended.
func (n *node) judge(ctx context.Context, wc *verbs.WC) error {
	switch {
	case wc.Status == verbs.WCLocLenErr:
		return fmt.Errorf("message longer than %d bytes; give both sides the same -S: %w", n.Size, wc.Err())
	case wc.Status == verbs.WCWRFlushErr:
		select {
		case <-n.conn.Done():
			return fmt.Errorf("%w before all messages were received; give both sides the same -C and -S", n.conn.Err())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	case wc.Err() != nil:
		return wc.Err()
	case wc.Opcode.IsRecv() && int(wc.ByteLen) != n.Size:
		return fmt.Errorf("message of %d bytes received, want %d; give both sides the same -S", wc.ByteLen, n.Size)
	}
	return nil
}

// check verifies the received messages: the first sender against its own, the other side against
// each other.
func (n *node) check() error {
	if n.Count == 0 {
		return nil
	}
	want := n.message(0)
	if n.out != nil {
		want = n.out.Bytes()
	}
	for i := range n.Count {
		got := n.message(i)
		for at := range got {
			if got[at] != want[at] {
				return &DataError{n.index, i, at, got[at], want[at]}
			}
		}
	}
	return nil
}

// A DataError reports a message with unexpected data.
type DataError struct {
	Connection, Message int // counted from 0
	Offset              int // of the first wrong byte
	Got, Want           byte
}

func (d *DataError) Error() string {
	return fmt.Sprintf("message %d has wrong data: byte %d is %#02x and should be %#02x", d.Message, d.Offset, d.Got, d.Want)
}

// Close frees all objects. Closing twice is safe.
func (n *node) Close() error {
	var errs []error
	if n.qp != nil {
		errs = append(errs, n.qp.Close())
	}
	for _, cq := range []verbs.CQ{n.sends, n.recvs} {
		if cq != nil {
			errs = append(errs, cq.Close())
		}
	}
	for _, mr := range []verbs.MR{n.in, n.out} {
		if mr != nil {
			errs = append(errs, mr.Close())
		}
	}
	if n.pd != nil {
		errs = append(errs, n.pd.Close())
	}
	n.qp, n.sends, n.recvs, n.in, n.out, n.pd = nil, nil, nil, nil, nil, nil
	return errors.Join(errs...)
}
