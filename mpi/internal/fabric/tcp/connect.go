package tcp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// ticket is the first thing on a connection: who has made it, and whether it
// is only to ask for one the other way round.
const (
	ticketMagic = 0x4d505454 // "MPTT"
	ticketSize  = 20
	toTalk      = 1
	toAsk       = 2
)

// Whoever connects has a while to say who he is, and there are not many of those at a
// time: they may be strangers.
const (
	helloTime    = 10 * time.Second
	maxStrangers = 64
)

func key(rank int) string { return "tcp-" + strconv.Itoa(rank) }

func (f *Fabric) ticket(why uint32) []byte {
	h := fnv.New64a()
	io.WriteString(h, f.book.JobID())
	b := binary.BigEndian.AppendUint32(nil, ticketMagic)
	b = h.Sum(b)
	b = binary.BigEndian.AppendUint32(b, uint32(f.rank))
	return binary.BigEndian.AppendUint32(b, why)
}

// check reads a ticket of the job.
func (f *Fabric) check(b []byte) (rank int, why uint32, err error) {
	mine := f.ticket(0)
	rank, why = int(binary.BigEndian.Uint32(b[12:])), binary.BigEndian.Uint32(b[16:])
	if string(b[:12]) != string(mine[:12]) || rank >= len(f.links) || rank == f.rank ||
		why == toTalk && rank < f.rank || why == toAsk && rank > f.rank || why != toTalk && why != toAsk {
		return 0, 0, fabric.ErrRefused
	}
	return rank, why, nil
}

func (f *Fabric) serve() {
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return
		}
		select {
		case f.turn <- struct{}{}:
		case <-f.ctx.Done():
			conn.Close()
			return
		}
		f.work.Go(func() {
			defer func() { <-f.turn }()
			f.accept(conn.(*net.TCPConn))
		})
	}
}

func (f *Fabric) accept(conn *net.TCPConn) {
	stop := context.AfterFunc(f.ctx, func() { conn.Close() })
	defer stop()
	_ = conn.SetReadDeadline(time.Now().Add(helloTime))
	b := make([]byte, ticketSize)
	_, err := io.ReadFull(conn, b)
	var rank int
	var why uint32
	if err == nil {
		rank, why, err = f.check(b)
	}
	if err != nil || why == toAsk {
		conn.Close()
		if err == nil {
			f.host.Do(func(*protocol.Core) { f.connect(rank) })
		}
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	f.join(rank, conn)
}

// join begins the use of a connection. There is one to a rank.
func (f *Fabric) join(rank int, conn *net.TCPConn) {
	f.host.Do(func(c *protocol.Core) {
		l := f.links[rank]
		if l == nil {
			l = newLink(f, rank)
			f.links[rank] = l
		}
		if f.closed || l.down || l.conn != nil {
			conn.Close()
			return
		}
		l.conn = conn
		f.keepAlive(conn)
		f.work.Go(l.read)
		c.Resume(rank)
	})
}

// connect makes the connection to a rank, if nobody is at it already: the
// lower rank is the server, and asks the other to come.
func (f *Fabric) connect(rank int) {
	if f.links[rank] != nil || f.closed {
		return
	}
	f.links[rank] = newLink(f, rank)
	f.work.Go(func() {
		if err := f.dial(rank); err != nil {
			f.host.Do(func(*protocol.Core) { f.lose(f.links[rank], fmt.Errorf("connecting: %w", err)) })
		}
	})
}

func (f *Fabric) dial(rank int) error {
	ctx, cancel := context.WithTimeout(f.ctx, f.o.GiveUp)
	defer cancel()
	addr, err := f.book.Get(ctx, key(rank))
	if err != nil {
		return err
	}
	conn, err := f.dialAddress(ctx, addr)
	if err != nil {
		return err
	}
	why := uint32(toTalk)
	if rank > f.rank {
		why = toAsk
	}
	if _, err := conn.Write(f.ticket(why)); err != nil || why == toAsk {
		conn.Close()
		if err == nil {
			time.AfterFunc(f.o.GiveUp, func() { f.missed(rank) })
		}
		return err
	}
	f.join(rank, conn.(*net.TCPConn))
	return nil
}

// errUnanswered is a rank that has heard that it is to connect, and has not.
var errUnanswered = errors.New("connecting: it has been asked to, and does not")

// missed is called when a rank that was asked to connect should have.
func (f *Fabric) missed(rank int) {
	f.host.Do(func(*protocol.Core) {
		if l := f.links[rank]; l.conn == nil {
			f.lose(l, errUnanswered)
		}
	})
}

// keepAlive has the system find out whether the other one is there: what was sent has
// to be acknowledged in time, and a connection on which nothing is sent is tried.
func (f *Fabric) keepAlive(conn *net.TCPConn) {
	const tries = 3
	every := max(time.Second, f.o.GiveUp/(tries+1))
	_ = conn.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: every, Interval: every, Count: tries})
	userTimeout(conn, f.o.GiveUp)
}
