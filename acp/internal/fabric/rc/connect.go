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

// connectTimeout bounds the time to connect to a rank.
const connectTimeout = 60 * time.Second

// disconnectTimeout bounds the wait for the peer's reply to a disconnect.
const disconnectTimeout = 600 * time.Millisecond

// encodeHello returns the private data of the connection request: magic, job and rank.
const (
	helloMagic = 0x41435031 // "ACP1"
	helloSize  = 16
)

func (n *Net) encodeHello() []byte {
	b := binary.BigEndian.AppendUint32(nil, helloMagic)
	b = binary.BigEndian.AppendUint64(b, n.jobHash())
	return binary.BigEndian.AppendUint32(b, uint32(n.rank))
}

// jobHash returns a hash of the job's id.
func (n *Net) jobHash() uint64 {
	h := fnv.New64a()
	h.Write([]byte(n.kvs.JobID()))
	return h.Sum64()
}

// parseHello returns the rank of a hello of this job.
func (n *Net) parseHello(b []byte) (rank int, err error) {
	switch {
	case len(b) < helloSize || binary.BigEndian.Uint32(b) != helloMagic:
		return 0, fmt.Errorf("connect: malformed hello of %d bytes", len(b))
	case binary.BigEndian.Uint64(b[4:]) != n.jobHash():
		return 0, fmt.Errorf("connect: peer belongs to job %#x, want %#x", binary.BigEndian.Uint64(b[4:]), n.jobHash())
	}
	if rank = int(binary.BigEndian.Uint32(b[12:])); rank >= len(n.links) || rank == n.rank {
		return 0, fmt.Errorf("connect: peer claims invalid rank %d", rank)
	}
	return rank, nil
}

// kvsKey returns the key under which a rank publishes its addresses.
func kvsKey(rank int) string { return "acp-rc-" + strconv.Itoa(rank) }

// startListener starts accepting connections, and publishes the addresses: RDMA-CM address and port, and the
// adapter's UDP port.
func (n *Net) startListener() (err error) {
	if n.cm, err = cm.New(n.dev, n.o.CM); err != nil {
		return err
	}
	l, err := n.cm.Listen(0, cm.ListenOptions{NoUC: true})
	if err != nil {
		return err
	}
	if err := n.kvs.Put(kvsKey(n.rank), fmt.Sprintf("%v/%d", l.Addr(), n.cm.Addr().Port())); err != nil {
		return err
	}
	n.goroutines.Go(func() { n.acceptLoop(l) })
	return nil
}

// lookUpAddr returns the addresses that a rank has published.
func (n *Net) lookUpAddr(ctx context.Context, rank int) (at netip.AddrPort, udpPort uint16, err error) {
	s, err := n.kvs.Get(ctx, kvsKey(rank))
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

// startDial connects l in the background.
func (n *Net) startDial(l *link) {
	if n.closed {
		return
	}
	n.stats.connects++
	n.goroutines.Go(func() {
		ctx, cancel := context.WithTimeout(n.ctx, connectTimeout)
		defer cancel()
		qp, conn, err := n.connectQP(ctx, l.rank)
		n.host.DoLocked(func() { n.onConnected(l, qp, conn, err) })
	})
}

// connectQP creates a queue pair and connects it to a rank.
func (n *Net) connectQP(ctx context.Context, rank int) (verbs.QP, *cm.Conn, error) {
	at, udpPort, err := n.lookUpAddr(ctx, rank)
	if err != nil {
		return nil, nil, err
	}
	qp, err := n.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: n.cq, RecvCQ: n.cq, SRQ: n.srq, SelectiveSignaling: true,
		Cap: verbs.QPCap{MaxSendWR: sendQueue, MaxSendSGE: 1, MaxInlineData: fabric.InlineMax}})
	if err != nil {
		return nil, nil, err
	}
	conn, err := n.cm.Dial(ctx, at, qp, cm.DialOptions{PrivateData: n.encodeHello(), UDPPort: udpPort, ConnectOptions: n.o.Connect})
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
	ctx, cancel := context.WithTimeout(n.ctx, disconnectTimeout)
	defer cancel()
	if l.conn != nil {
		_ = l.conn.Disconnect(ctx, nil)
	}
	if l.qp != nil {
		_ = l.qp.Close()
	}
}

// Close implements fabric.Net. It is called after a barrier, when the other ranks close as well, so a lost
// reply to the disconnect is awaited for disconnectTimeout only.
func (n *Net) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, disconnectTimeout)
	defer cancel()
	var ends sync.WaitGroup
	n.host.DoLocked(func() {
		n.closed = true
		for _, l := range n.links {
			if l != nil && l.conn != nil {
				ends.Go(func() { _ = l.conn.Disconnect(ctx, nil) })
			}
		}
	})
	ends.Wait()
	n.cancel()
	var err error
	if n.cm != nil {
		err = n.cm.Close()
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
