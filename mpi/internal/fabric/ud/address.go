package ud

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/softrnic/softrnic/internal/datagram"
	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// parseAddress parses the address of a rank in the book.
func parseAddress(s string) (datagram.Address, error) {
	a, err := datagram.ParseAddress(s)
	if err != nil {
		return a, fmt.Errorf("malformed rank address %.80q: %w", s, err)
	}
	return a, nil
}

func addressKey(rank int) string { return "ud-" + strconv.Itoa(rank) }

// A link is the state of a rank.
type link struct {
	state state
	qpn   uint32
	eager int // maximum payload of a packet in bytes
}

type state uint8

const (
	stateUnknown state = iota
	stateLookup        // lookup in the book in progress
	stateOpen
	stateFailed
)

// lookupTimeout is the time limit of a lookup in the book.
const lookupTimeout = 60 * time.Second

// startLookup looks up a rank, unless that is in progress.
func (f *Fabric) startLookup(rank int) {
	if l := f.links.Get(rank); l.state == stateUnknown && !f.closed {
		l.state = stateLookup
		f.work.Go(func() {
			ctx, cancel := vtime.WithTimeout(f.ctx, lookupTimeout)
			defer cancel()
			a, err := f.lookupAddress(ctx, rank)
			f.host.Do(func(*protocol.Core) { f.finishLookup(rank, a, err) })
		})
	}
}

func (f *Fabric) lookupAddress(ctx context.Context, rank int) (a datagram.Address, err error) {
	s, err := f.book.Get(ctx, addressKey(rank))
	if err != nil {
		return a, err
	}
	return parseAddress(s)
}

// finishLookup opens the communication with a rank after its lookup.
func (f *Fabric) finishLookup(rank int, a datagram.Address, err error) {
	l := f.links.Get(rank)
	if f.closed || l.state != stateLookup {
		return
	}
	if err == nil {
		err = f.port.ConnectPeer(rank, a)
	}
	if err != nil {
		f.failRank(rank, fmt.Errorf("address lookup: %w", err))
		return
	}
	l.state, l.qpn, l.eager = stateOpen, a.QPN, min(f.o.Eager, maxPayload(f.port.PeerMTU(rank), datagram.MaxDatagrams))
	f.host.Core().Resume(rank)
	f.dispatchAndTransmit()
}

// ConnectAll implements fabric.Fabric. There are no connections; all ranks are looked
// up.
func (f *Fabric) ConnectAll(ctx context.Context) error {
	for i := 1; i < f.ranks; i++ {
		rank := (f.rank + i) % f.ranks
		a, err := f.lookupAddress(ctx, rank)
		if err != nil {
			return fmt.Errorf("rank %d: %w", rank, err)
		}
		f.host.Do(func(*protocol.Core) {
			if l := f.links.Get(rank); l.state == stateUnknown {
				l.state = stateLookup
			}
			f.finishLookup(rank, a, nil)
		})
	}
	return nil
}

var _ fabric.Fabric = (*Fabric)(nil)
