package acp

import (
	"sync/atomic"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/protocol"
	"github.com/softrnic/softrnic/rnic"
)

// SayPlaced makes a sending end claim that a message of n bytes was written directly, although it was not.
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

// FabricHost returns the interface that fabrics call.
func (p *Process) FabricHost() fabric.Host { return (*fabricHost)(p) }

// Lie writes an impossible index to the other end of a channel.
func (ch *Channel) Lie() {
	ch.p.mu.Lock()
	defer ch.p.unlockAndNotify()
	off := 0
	if ch.send != nil {
		off = protocol.HeadOffset
	}
	atomic.StoreUint64(wordPtr(ch.mem.Bytes(), ch.controlOffset()+off), 1<<40)
}

// Done reports whether a request is complete, without polling.
func (r *Request) Done() bool {
	r.ch.p.mu.Lock()
	defer r.ch.p.mu.Unlock()
	return r.done
}

// Registrations returns the number of memory regions of the rank's adapter.
func (p *Process) Registrations() int { return p.dev.(*rnic.Device).Stats().MRs }

// Sleeps reports whether the goroutine that leads sleeps between polls.
func (p *Process) Sleeps() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.polling.sleeps()
}
