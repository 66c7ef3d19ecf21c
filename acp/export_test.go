package acp

import (
	"sync/atomic"

	"github.com/softrnic/softrnic/acp/internal/protocol"
	"github.com/softrnic/softrnic/rnic"
)

// SayPlaced has a sending end say that a message of n bytes is in its place, where it has not put any.
func (ch *Channel) SayPlaced(n int) bool {
	ch.p.mu.Lock()
	defer ch.p.unlockAndNotify()
	g, ok := ch.send.NextDirect()
	if ok {
		ch.p.startAccess(ch.newHeaderPut(ch.remoteSlot(g.Ring), uint64(n)|protocol.DirectFlag, (*controlOp)(ch)))
		ch.putTail()
		ch.p.flushPosted()
	}
	return ok
}

// Lie has the other end of a channel that mirrors indices tell one that cannot be.
func (ch *Channel) Lie() {
	ch.p.mu.Lock()
	defer ch.p.unlockAndNotify()
	off := 0
	if ch.send != nil {
		off = protocol.HeadOffset
	}
	atomic.StoreUint64(wordPtr(ch.mem.Bytes(), ch.controlOffset()+off), 1<<40)
}

// Done reports whether a request is at its end, without a look at anything.
func (r *Request) Done() bool {
	r.ch.p.mu.Lock()
	defer r.ch.p.mu.Unlock()
	return r.done
}

// Registrations is how many memory regions the rank's adapter has.
func (p *Process) Registrations() int { return p.dev.(*rnic.Device).Stats().MRs }
