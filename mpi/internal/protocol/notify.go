package protocol

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

// Notifier is a Net that can tell a rank that its memory has been written: an RDMA
// WRITE with immediate data.
type Notifier interface {
	// StoreNotify is Net.Store that also has Core.Notified called at the rank, with
	// the notice, when the memory is written. Packets may overtake it. Core.Moved says
	// no more than that b is not the net's any more.
	StoreNotify(rank int, b []byte, key envelope.Key, notice uint32, move uint64) error
}

// PutNotify is Put that tells the other rank, too: its Noticed is called when the
// memory is written. It is done when r.Buf, which is not empty, has another use.
func (c *Core) PutNotify(r *Request, key envelope.Key, notice uint32) {
	if _, ok := c.net.(Notifier); !ok || len(r.Buf) == 0 {
		c.enter()
		defer c.leave()
		c.done(r, fmt.Errorf("rank %d: it cannot be told of %d bytes: %w", r.Dest, len(r.Buf), errors.ErrUnsupported))
		return
	}
	r.notice = notice
	c.oneSided(r, key, putNotify)
}

// Notified says that another rank has written to memory here, by StoreNotify. An
// error is a breach of the protocol: the caller cuts the rank off, and Lost follows.
func (c *Core) Notified(from int, notice uint32) error {
	c.enter()
	defer c.leave()
	switch {
	case c.peers[from].lost != nil:
		c.Stats.Dropped++
		return nil
	case c.Noticed == nil:
		return fmt.Errorf("%w: rank %d: notice %d, and nobody expects any", ErrProtocol, from, notice)
	}
	if err := c.Noticed(from, notice); err != nil {
		return fmt.Errorf("%w: rank %d: %w", ErrProtocol, from, err)
	}
	return nil
}
