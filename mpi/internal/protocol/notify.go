package protocol

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

// A Notifier is a Net with RDMA WRITE with immediate data.
type Notifier interface {
	// RDMAWriteImm is Net.RDMAWrite that also causes Core.HandleNotify at the target,
	// with notice, when the memory is written. Packets may overtake it.
	// Core.TransferDone only means that the net no longer owns b.
	RDMAWriteImm(rank int, b []byte, key envelope.Key, notice uint32, transferID uint64) error
}

// PutNotify is Put with a notification: the target's OnNotify is called when the memory
// is written. It is done when r.Buf, which must not be empty, may be reused.
func (c *Core) PutNotify(r *Request, key envelope.Key, notice uint32) {
	if _, ok := c.net.(Notifier); !ok || len(r.Buf) == 0 {
		c.enter()
		defer c.exit()
		c.complete(r, fmt.Errorf("rank %d: put with notification of %d bytes: %w", r.Dest, len(r.Buf), errors.ErrUnsupported))
		return
	}
	r.notice = notice
	c.startOneSided(r, key, opPutNotify)
}

// HandleNotify handles the notification of an RDMAWriteImm to local memory. A non-nil
// error is a protocol violation: the caller disconnects the rank and calls FailPeer.
func (c *Core) HandleNotify(from int, notice uint32) error {
	c.enter()
	defer c.exit()
	switch {
	case c.peers[from].err != nil:
		c.Stats.Dropped++
		return nil
	case c.OnNotify == nil:
		return fmt.Errorf("%w: rank %d: unexpected notification %d", ErrProtocol, from, notice)
	}
	if err := c.OnNotify(from, notice); err != nil {
		return fmt.Errorf("%w: rank %d: %w", ErrProtocol, from, err)
	}
	return nil
}
