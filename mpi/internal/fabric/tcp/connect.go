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

// A hello is the first message on a connection: the connecting rank, and whether it only
// requests a connection in the reverse direction.
const (
	helloMagic         = 0x4d505454 // "MPTT"
	helloSize          = 20
	purposeData        = 1
	purposeConnectBack = 2
)

// Bounds of unidentified connections, which may come from strangers: the time to send a hello, and their number.
const (
	helloTimeout     = 10 * time.Second
	maxPendingHellos = 64
)

func addressKey(rank int) string { return "tcp-" + strconv.Itoa(rank) }

func (f *Fabric) hello(cause uint32) []byte {
	h := fnv.New64a()
	io.WriteString(h, f.book.JobID())
	b := binary.BigEndian.AppendUint32(nil, helloMagic)
	b = h.Sum(b)
	b = binary.BigEndian.AppendUint32(b, uint32(f.rank))
	return binary.BigEndian.AppendUint32(b, cause)
}

// parseHello checks and decodes a hello.
func (f *Fabric) parseHello(b []byte) (rank int, cause uint32, err error) {
	mine := f.hello(0)
	rank, cause = int(binary.BigEndian.Uint32(b[12:])), binary.BigEndian.Uint32(b[16:])
	if string(b[:12]) != string(mine[:12]) || rank >= len(f.links) || rank == f.rank ||
		cause == purposeData && rank < f.rank || cause == purposeConnectBack && rank > f.rank || cause != purposeData && cause != purposeConnectBack {
		return 0, 0, fabric.ErrRefused
	}
	return rank, cause, nil
}

func (f *Fabric) acceptLoop() {
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return
		}
		select {
		case f.helloSlots <- struct{}{}:
		case <-f.ctx.Done():
			conn.Close()
			return
		}
		f.work.Go(func() {
			defer func() { <-f.helloSlots }()
			f.handleAccepted(conn.(*net.TCPConn))
		})
	}
}

func (f *Fabric) handleAccepted(conn *net.TCPConn) {
	stop := context.AfterFunc(f.ctx, func() { conn.Close() })
	defer stop()
	_ = conn.SetReadDeadline(time.Now().Add(helloTimeout))
	b := make([]byte, helloSize)
	_, err := io.ReadFull(conn, b)
	var rank int
	var cause uint32
	if err == nil {
		rank, cause, err = f.parseHello(b)
	}
	if err != nil || cause == purposeConnectBack {
		conn.Close()
		if err == nil {
			f.host.Do(func(*protocol.Core) { f.startConnect(rank) })
		}
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	f.attachConn(rank, conn)
}

// attachConn starts the use of a connection. There is one per rank.
func (f *Fabric) attachConn(rank int, conn *net.TCPConn) {
	f.host.Do(func(c *protocol.Core) {
		l := f.links[rank]
		if l == nil {
			l = newLink(f, rank)
			f.links[rank] = l
		}
		if f.closed.Load() || l.failed || l.socket != nil {
			conn.Close()
			return
		}
		f.enableKeepAlive(conn)
		if f.poller == nil {
			l.socket = startSocket(conn, l)
		} else if s, err := f.poller.addConn(conn, rank); err != nil {
			f.failLink(l, fmt.Errorf("connect: %w", err))
			return
		} else {
			l.socket = s
		}
		c.Resume(rank)
	})
}

// startConnect connects to a rank, unless that is in progress. The lower rank is the
// server and asks the higher one to connect.
func (f *Fabric) startConnect(rank int) {
	if f.links[rank] != nil || f.closed.Load() {
		return
	}
	f.links[rank] = newLink(f, rank)
	f.work.Go(func() {
		if err := f.dialRank(rank); err != nil {
			f.host.Do(func(*protocol.Core) { f.failLink(f.links[rank], fmt.Errorf("connect: %w", err)) })
		}
	})
}

func (f *Fabric) dialRank(rank int) error {
	ctx, cancel := context.WithTimeout(f.ctx, f.o.GiveUp)
	defer cancel()
	addr, err := f.book.Get(ctx, addressKey(rank))
	if err != nil {
		return err
	}
	conn, err := f.dialAddress(ctx, addr)
	if err != nil {
		return err
	}
	cause := uint32(purposeData)
	if rank > f.rank {
		cause = purposeConnectBack
	}
	if _, err := conn.Write(f.hello(cause)); err != nil || cause == purposeConnectBack {
		conn.Close()
		if err == nil {
			time.AfterFunc(f.o.GiveUp, func() { f.checkConnectedBack(rank) })
		}
		return err
	}
	f.attachConn(rank, conn.(*net.TCPConn))
	return nil
}

// errNoConnectBack says that a rank was asked to connect and did not.
var errNoConnectBack = errors.New("connect: no connection after request")

// checkConnectedBack fails a rank that was asked to connect and did not in time.
func (f *Fabric) checkConnectedBack(rank int) {
	f.host.Do(func(*protocol.Core) {
		if l := f.links[rank]; l.socket == nil {
			f.failLink(l, errNoConnectBack)
		}
	})
}

// enableKeepAlive lets the system detect an unreachable host: sent data must be
// acknowledged in time, and an idle connection is probed.
func (f *Fabric) enableKeepAlive(conn *net.TCPConn) {
	const tries = 3
	every := max(time.Second, f.o.GiveUp/(tries+1))
	_ = conn.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: every, Interval: every, Count: tries})
	setUserTimeout(conn, f.o.GiveUp)
}
