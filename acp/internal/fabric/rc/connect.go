package rc

import (
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/rankwire"
	"github.com/softrnic/softrnic/verbs"
)

// wireMagic begins the tickets of connection requests: "ACP1".
const wireMagic = 0x41435031

// startListener starts accepting connections.
func (n *Net) startListener() (err error) {
	if n.wire, err = rankwire.Listen(n.dev, n.kvs, rankwire.Options{Name: "acp-rc", Magic: wireMagic, CM: n.o.CM}); err == nil {
		n.wire.Serve(n.ctx, n.acceptConn)
	}
	return err
}

// startDial connects l in the background.
func (n *Net) startDial(l *link) {
	if n.closed {
		return
	}
	n.stats.connects++
	n.goroutines.Go(func() {
		ctx, cancel := context.WithTimeout(n.ctx, rankwire.ConnectTimeout)
		defer cancel()
		qp, conn, err := n.connectQP(ctx, l.rank)
		n.host.DoLocked(func() { n.onConnected(l, qp, conn, err) })
	})
}

// connectQP creates a queue pair and connects it to a rank.
func (n *Net) connectQP(ctx context.Context, rank int) (verbs.QP, *cm.Conn, error) {
	qp, err := n.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: n.cq, RecvCQ: n.cq, SRQ: n.srq, SelectiveSignaling: true,
		Cap: verbs.QPCap{MaxSendWR: sendQueue, MaxSendSGE: 1, MaxInlineData: fabric.InlineMax}})
	if err != nil {
		return nil, nil, err
	}
	conn, err := n.wire.Dial(ctx, rank, 0, qp, cm.DialOptions{ConnectOptions: n.o.Connect})
	return qp, conn, err
}

// onConnected records the result of startDial. The host's lock is held.
func (n *Net) onConnected(l *link, qp verbs.QP, conn *cm.Conn, err error) {
	if err == nil && !n.closed {
		n.byQP[qp.Num()] = l
		err = n.cq.Resize(n.cqDepth())
	}
	if l.state == down { // the link has failed meanwhile
		n.goroutines.Go(func() { n.closeLink(&link{qp: qp, conn: conn}) })
		return
	}
	l.qp, l.conn = qp, conn
	if n.closed {
		return // Close destroys it
	}
	if err != nil {
		n.failLink(l, fmt.Errorf("connect: %w", err))
		return
	}
	l.state = up
	conn.AfterDone(func() {
		n.host.DoLocked(func() {
			if l.conn == conn { // otherwise the link has reconnected
				n.failLink(l, conn.Err())
			}
		})
	})
	n.host.PeerFound(l.rank, conn.PrivateData())
	n.postPending(l)
}

// closeLink disconnects and destroys the connection of a link, which nothing may refer to any more.
func (n *Net) closeLink(l *link) {
	ctx, cancel := context.WithTimeout(n.ctx, rankwire.DisconnectTimeout)
	defer cancel()
	if l.conn != nil {
		_ = l.conn.Disconnect(ctx, nil)
	}
	if l.qp != nil {
		_ = l.qp.Close()
	}
}

// Close implements fabric.Net. It is called after a barrier, when the other ranks close as well.
func (n *Net) Close(ctx context.Context) (err error) {
	var conns []*cm.Conn
	n.host.DoLocked(func() {
		n.closed = true
		for _, l := range n.links {
			if l != nil && l.conn != nil {
				conns = append(conns, l.conn)
			}
		}
	})
	rankwire.DisconnectAll(ctx, conns)
	n.cancel()
	if n.wire != nil {
		err = n.wire.Close()
	}
	n.goroutines.Wait()
	err = errors.Join(err, n.incoming.destroyAll())
	for _, l := range n.links {
		if l != nil && l.qp != nil {
			err = errors.Join(err, l.qp.Close())
		}
	}
	return err
}
