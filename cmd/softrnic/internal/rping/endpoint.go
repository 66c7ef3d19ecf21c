package rping

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/internal/closing"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
	"github.com/softrnic/softrnic/verbs"
)

// sendDepth is the send queue depth of the original.
const sendDepth = 16

// An endpoint has the verbs objects of one side of a connection.
type endpoint struct {
	*Options
	pd     verbs.PD
	cq     verbs.CQ
	qp     verbs.QP
	recv   verbs.MR // receives an Info
	data   verbs.MR // the data read, or written by the server
	source verbs.MR // client: the data for the server to read
	conn   *cm.Conn // nil before the connection
	alive  *watch.Watch
}

// newEndpoint opens an endpoint on dev. The caller must close it.
func newEndpoint(o *Options, dev verbs.Device) (*endpoint, error) {
	e := &endpoint{Options: o}
	if err := e.allocate(dev); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

func (e *endpoint) allocate(dev verbs.Device) (err error) {
	if e.pd, err = dev.AllocPD(); err != nil {
		return err
	}
	if e.cq, err = dev.CreateCQ(2 * sendDepth); err != nil {
		return err
	}
	if e.qp, err = e.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: e.cq, RecvCQ: e.cq,
		Cap: verbs.QPCap{MaxSendWR: sendDepth, MaxRecvWR: 2, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInlineData: InfoLen}}); err != nil {
		return err
	}
	e.debugf("created qp 0x%x\n", e.qp.Num())
	// One byte more, to detect a longer message.
	if e.recv, err = e.pd.RegMR(make([]byte, InfoLen+1), verbs.AccessLocalWrite); err != nil {
		return err
	}
	access := verbs.AccessLocalWrite | verbs.AccessRemoteRead | verbs.AccessRemoteWrite
	if !e.Client {
		access = verbs.AccessLocalWrite // its address is not advertised
	}
	if e.data, err = e.pd.RegMR(make([]byte, e.Size), access); err != nil {
		return err
	}
	if e.Client {
		e.source, err = e.pd.RegMR(make([]byte, e.Size), verbs.AccessLocalWrite|verbs.AccessRemoteRead)
	}
	return err
}

// postFirstReceive posts the receive. The connection manager calls it.
func (e *endpoint) postFirstReceive(verbs.QP) error { return e.postRecv() }

func (e *endpoint) postRecv() error {
	_, err := e.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{e.recv.SGE(0, InfoLen+1)}}})
	return err
}

// sendInfo sends a message.
func (e *endpoint) sendInfo(i Info) error {
	return e.postSend(verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendInline, InlineData: i.Append(nil)})
}

func (e *endpoint) postSend(wr verbs.SendWR) error {
	wr.Flags |= verbs.SendSignaled
	_, err := e.qp.PostSend([]verbs.SendWR{wr})
	return err
}

// waitCompletion waits for a completion with opcode want. For a receive it returns the message.
func (e *endpoint) waitCompletion(ctx context.Context, want verbs.WCOpcode) (Info, error) {
	var wcs [1]verbs.WC
	for {
		if _, err := e.cq.PollWait(ctx, wcs[:]); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return Info{}, err
		}
		wc := &wcs[0]
		if err := wc.Err(); err != nil {
			return Info{}, e.completionError(ctx, wc, err)
		}
		e.alive.Beat()
		switch {
		case wc.Opcode == verbs.WCSend:
			e.debugf("send completion\n")
			continue
		case wc.Opcode != want:
			return Info{}, fmt.Errorf("unexpected completion: peer does not follow the rping protocol")
		case want != verbs.WCRecv:
			return Info{}, nil
		}
		e.debugf("recv completion\n")
		info, err := ParseInfo(e.recv.Bytes()[:wc.ByteLen])
		if err == nil {
			err = e.postRecv()
		}
		return info, err
	}
}

// completionError returns the reason of a failed completion: the end of the connection if it was
// flushed.
func (e *endpoint) completionError(ctx context.Context, wc *verbs.WC, err error) error {
	if wc.Status != verbs.WCWRFlushErr {
		return fmt.Errorf("cq completion failed status %d: %w", wc.Status, err)
	}
	select {
	case <-e.conn.Done():
		return e.conn.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// debugf writes a message with Debug.
func (e *endpoint) debugf(format string, args ...any) { e.Options.debugf(format, args...) }

// close frees all objects. Closing twice is safe.
func (e *endpoint) close() error {
	return closing.All[io.Closer](e.qp, e.cq, e.recv, e.data, e.source, e.pd)
}
