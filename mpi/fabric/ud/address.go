package ud

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/softrnic/softrnic/mpi/fabric"
	"github.com/softrnic/softrnic/mpi/protocol"
	"github.com/softrnic/softrnic/reliability/nack"
	"github.com/softrnic/softrnic/verbs"
)

// address is where a rank is, as the book has it.
type address struct {
	at    netip.AddrPort // of its adapter
	qpn   uint32
	qkey  uint32
	epoch uint32
	mtu   int // bytes of its longest datagram
}

func (a address) String() string {
	return fmt.Sprintf("%v/%x/%x/%x/%d", a.at, a.qpn, a.qkey, a.epoch, a.mtu)
}

func parseAddress(s string) (a address, err error) {
	var at string
	rest := s
	field := func(base int) (v uint64) {
		var text string
		if err != nil {
			return 0
		}
		text, rest = cut(rest)
		v, err = strconv.ParseUint(text, base, 32)
		return v
	}
	at, rest = cut(rest)
	a.at, err = netip.ParseAddrPort(at)
	a.qpn, a.qkey, a.epoch, a.mtu = uint32(field(16)), uint32(field(16)), uint32(field(16)), int(field(10))
	if err == nil && (a.qpn == 0 || a.epoch == 0 || a.mtu < 256 || rest != "") {
		err = fmt.Errorf("a number is missing, or cannot be")
	}
	if err != nil {
		return address{}, fmt.Errorf("%.80q is no address of a rank: %w", s, err)
	}
	return a, nil
}

func cut(s string) (head, tail string) {
	for i := range s {
		if s[i] == '/' {
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

func key(rank int) string { return "ud-" + strconv.Itoa(rank) }

// link is what is known of a rank.
type link struct {
	state state
	ah    verbs.AH // shared by all ranks of an adapter
	qpn   uint32
	qkey  uint32
	eager int // payload of the longest packet to it, in bytes
}

type state uint8

const (
	unknown state = iota
	sought        // in the book
	open
	lost
)

// seekTime is how long the book may take to answer.
const seekTime = 60 * time.Second

// seek looks a rank up, if nobody is at it already.
func (f *Fabric) seek(rank int) {
	if l := &f.links[rank]; l.state == unknown && !f.closed {
		l.state = sought
		f.work.Go(func() {
			ctx, cancel := context.WithTimeout(f.ctx, seekTime)
			defer cancel()
			a, err := f.find(ctx, rank)
			f.host.Do(func(*protocol.Core) { f.found(rank, a, err) })
		})
	}
}

func (f *Fabric) find(ctx context.Context, rank int) (a address, err error) {
	s, err := f.book.Get(ctx, key(rank))
	if err != nil {
		return a, err
	}
	return parseAddress(s)
}

// found begins to talk to a rank.
func (f *Fabric) found(rank int, a address, err error) {
	l := &f.links[rank]
	if f.closed || l.state != sought {
		return
	}
	if err == nil {
		l.ah, err = f.handle(a.at)
	}
	if err != nil {
		f.lose(rank, fmt.Errorf("looking up where it is: %w", err))
		return
	}
	mtu := min(a.mtu, f.mtu)
	l.state, l.qpn, l.qkey, l.eager = open, a.qpn, a.qkey, min(f.o.Eager, longest(mtu, maxDatagrams))
	f.core.Open(f.now(), rank, nack.Peer{Epoch: a.epoch, MTU: mtu})
	f.host.Core().Resume(rank)
	f.settle()
}

// handle returns the address handle of an adapter.
func (f *Fabric) handle(at netip.AddrPort) (verbs.AH, error) {
	if ah := f.ahs[at]; ah != nil {
		return ah, nil
	}
	ah, err := f.pd.CreateAH(verbs.AHAttr{DGID: verbs.GIDFromAddr(at.Addr()), UDPPort: at.Port()})
	if err == nil {
		f.ahs[at] = ah
	}
	return ah, err
}

// publish puts our own address into the book.
func (f *Fabric) publish(qkey uint32) error {
	port, err := f.dev.QueryPort(1)
	if err != nil {
		return err
	}
	gid, err := f.dev.QueryGID(1, 0)
	if err != nil {
		return err
	}
	a := address{netip.AddrPortFrom(gid.GID.Addr(), port.UDPPort), f.qp.Num(), qkey, f.epoch, f.mtu}
	return f.book.Put(key(f.rank), a.String())
}

// ConnectAll implements fabric.Fabric: there are no connections, but all ranks
// can be looked up.
func (f *Fabric) ConnectAll(ctx context.Context) error {
	for i := 1; i < len(f.links); i++ {
		rank := (f.rank + i) % len(f.links)
		a, err := f.find(ctx, rank)
		if err != nil {
			return fmt.Errorf("rank %d: %w", rank, err)
		}
		f.host.Do(func(*protocol.Core) {
			if l := &f.links[rank]; l.state == unknown {
				l.state = sought
			}
			f.found(rank, a, nil)
		})
	}
	return nil
}

var _ fabric.Fabric = (*Fabric)(nil)
