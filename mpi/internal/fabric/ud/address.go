package ud

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/softrnic/softrnic/internal/datagram"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// parseAddress reads where a rank is, as the book has it.
func parseAddress(s string) (datagram.Address, error) {
	a, err := datagram.ParseAddress(s)
	if err != nil {
		return a, fmt.Errorf("%.80q is no address of a rank: %w", s, err)
	}
	return a, nil
}

func key(rank int) string { return "ud-" + strconv.Itoa(rank) }

// link is what is known of a rank.
type link struct {
	state state
	qpn   uint32
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

func (f *Fabric) find(ctx context.Context, rank int) (a datagram.Address, err error) {
	s, err := f.book.Get(ctx, key(rank))
	if err != nil {
		return a, err
	}
	return parseAddress(s)
}

// found begins to talk to a rank.
func (f *Fabric) found(rank int, a datagram.Address, err error) {
	l := &f.links[rank]
	if f.closed || l.state != sought {
		return
	}
	if err == nil {
		err = f.port.Connect(rank, a)
	}
	if err != nil {
		f.lose(rank, fmt.Errorf("looking up where it is: %w", err))
		return
	}
	l.state, l.qpn, l.eager = open, a.QPN, min(f.o.Eager, longest(f.port.MTU(rank), datagram.MaxDatagrams))
	f.host.Core().Resume(rank)
	f.settle()
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
