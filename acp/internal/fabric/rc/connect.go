package rc

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// connectTime is how long a rank may take to answer.
const connectTime = 60 * time.Second

// farewell is how long a rank may take to hear that a connection ends.
const farewell = 600 * time.Millisecond

// ticket is what a rank says of itself when it connects: REQ's private data.
const (
	ticketMagic = 0x41435031 // "ACP1"
	ticketSize  = 16
)

func (n *Net) ticket() []byte {
	b := binary.BigEndian.AppendUint32(nil, ticketMagic)
	b = binary.BigEndian.AppendUint64(b, n.job())
	return binary.BigEndian.AppendUint32(b, uint32(n.rank))
}

func (n *Net) job() uint64 {
	h := fnv.New64a()
	h.Write([]byte(n.book.JobID()))
	return h.Sum64()
}

// check reads a ticket of the job.
func (n *Net) check(b []byte) (rank int, err error) {
	switch {
	case len(b) < ticketSize || binary.BigEndian.Uint32(b) != ticketMagic:
		return 0, errors.New("it speaks something else")
	case binary.BigEndian.Uint64(b[4:]) != n.job():
		return 0, errors.New("it is of another job")
	}
	if rank = int(binary.BigEndian.Uint32(b[12:])); rank >= len(n.links) || rank == n.rank {
		return 0, fmt.Errorf("it says it is rank %d", rank)
	}
	return rank, nil
}

func key(rank int) string { return "acp-rc-" + strconv.Itoa(rank) }

// listen begins to take connections, and puts into the book where: address and port of
// RDMA-CM, UDP port of the adapter.
func (n *Net) listen() (err error) {
	if n.cm, err = cm.New(n.dev, n.o.CM); err != nil {
		return err
	}
	l, err := n.cm.Listen(0, cm.ListenOptions{NoUC: true})
	if err != nil {
		return err
	}
	if err := n.book.Put(key(n.rank), fmt.Sprintf("%v/%d", l.Addr(), n.cm.Addr().Port())); err != nil {
		return err
	}
	n.work.Go(func() { n.serve(l) })
	return nil
}

// find looks a rank up.
func (n *Net) find(ctx context.Context, rank int) (at netip.AddrPort, udpPort uint16, err error) {
	s, err := n.book.Get(ctx, key(rank))
	if err != nil {
		return at, 0, err
	}
	first, second, _ := strings.Cut(s, "/")
	if at, err = netip.ParseAddrPort(first); err != nil {
		return at, 0, err
	}
	port, err := strconv.ParseUint(second, 10, 16)
	return at, uint16(port), err
}

// dial makes a link's connection, in the background.
func (n *Net) dial(l *link) {
	if n.closed {
		return
	}
	n.stats.connects++
	n.work.Go(func() {
		ctx, cancel := context.WithTimeout(n.ctx, connectTime)
		defer cancel()
		qp, conn, err := n.reach(ctx, l.rank)
		n.host.Do(func() { n.reached(l, qp, conn, err) })
	})
}

// reach connects a new queue pair to a rank.
func (n *Net) reach(ctx context.Context, rank int) (verbs.QP, *cm.Conn, error) {
	at, udpPort, err := n.find(ctx, rank)
	if err != nil {
		return nil, nil, err
	}
	qp, err := n.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: n.cq, RecvCQ: n.cq, SRQ: n.srq, SelectiveSignaling: true,
		Cap: verbs.QPCap{MaxSendWR: sendQueue, MaxSendSGE: 1, MaxInlineData: fabric.InlineMax}})
	if err != nil {
		return nil, nil, err
	}
	conn, err := n.cm.Dial(ctx, at, cm.DialOptions{QP: qp, PrivateData: n.ticket(), UDPPort: udpPort, ConnectOptions: n.o.Connect})
	return qp, conn, err
}

// reached is called with the lock when that has come to its end.
func (n *Net) reached(l *link, qp verbs.QP, conn *cm.Conn, err error) {
	if err == nil && !n.closed {
		n.byQP[qp.Num()] = l
		err = n.cq.Resize(n.depth())
	}
	if l.state == down { // everything has ended meanwhile
		n.work.Go(func() { n.end(&link{qp: qp, conn: conn}) })
		return
	}
	l.qp, l.conn = qp, conn
	if n.closed {
		return // Close ends it
	}
	if err != nil {
		n.lose(l, fmt.Errorf("connecting: %w", err))
		return
	}
	l.state = up
	conn.AfterDone(func() {
		n.host.Do(func() {
			if l.conn == conn { // else it was made anew
				n.lose(l, conn.Err())
			}
		})
	})
	n.host.Met(l.rank, conn.PrivateData())
	n.post(l)
}

// end ends the connection of a link that nothing refers to any more.
func (n *Net) end(l *link) {
	ctx, cancel := context.WithTimeout(n.ctx, farewell)
	defer cancel()
	if l.conn != nil {
		_ = l.conn.Disconnect(ctx)
	}
	if l.qp != nil {
		_ = l.qp.Destroy()
	}
}

// Close implements fabric.Net. The other ranks are known to be about to do the same, so
// that one whose answer got lost is not waited for.
func (n *Net) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	var ends sync.WaitGroup
	n.host.Do(func() {
		n.closed = true
		for _, l := range n.links {
			if l != nil && l.conn != nil {
				ends.Go(func() { _ = l.conn.Disconnect(ctx) })
			}
		}
	})
	ends.Wait()
	n.cancel()
	var err error
	if n.cm != nil {
		err = n.cm.Close()
	}
	n.work.Wait()
	err = errors.Join(err, n.in.destroy())
	for _, l := range n.links {
		if l != nil && l.qp != nil {
			err = errors.Join(err, l.qp.Destroy())
		}
	}
	return err
}
