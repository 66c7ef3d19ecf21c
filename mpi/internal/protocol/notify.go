package protocol

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

// Notifier is a Net that can tell a rank that its memory has been written: an RDMA
// WRITE with immediate data.
type Notifier interface {
	// RDMAWriteImm is Net.RDMAWrite that also has Core.HandleNotify called at the rank, with
	// the notice, when the memory is written. Packets may overtake it. Core.TransferDone says
	// no more than that b is not the net's any more.
	RDMAWriteImm(rank int, b []byte, key envelope.Key, notice uint32, move uint64) error
}

// PutNotify is Put that tells the other rank, too: its Noticed is called when the
// memory is written. It is done when r.Buf, which is not empty, has another use.
func (c *Core) PutNotify(r *Request, key envelope.Key, notice uint32) {
	if _, ok := c.net.(Notifier); !ok || len(r.Buf) == 0 {
		c.enter()
		defer c.exit()
		c.complete(r, fmt.Errorf("rank %d: it cannot be told of %d bytes: %w", r.Dest, len(r.Buf), errors.ErrUnsupported))
		return
	}
	r.notice = notice
	c.startOneSided(r, key, opPutNotify)
}

// HandleNotify says that another rank has written to memory here, by StoreNotify. An
// error is a breach of the protocol: the caller cuts the rank off, and Lost follows.
func (c *Core) HandleNotify(from int, notice uint32) error {
	c.enter()
	defer c.exit()
	switch {
	case c.peers[from].err != nil:
		c.Stats.Dropped++
		return nil
	case c.OnNotify == nil:
		return fmt.Errorf("%w: rank %d: notice %d, and nobody expects any", ErrProtocol, from, notice)
	}
	if err := c.OnNotify(from, notice); err != nil {
		return fmt.Errorf("%w: rank %d: %w", ErrProtocol, from, err)
	}
	return nil
}
