package rdma

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/verbs"
)

// maxMemoryPolls is the number of consecutive calls of Poll that may skip the
// completion queue because the fast path had packets: polling the adapter is a system
// call, as expensive as all other work.
const maxMemoryPolls = 8

// Poll implements fabric.Fabric.
func (f *Fabric) Poll() (some bool) {
	f.Flush()
	if f.pollRings() {
		if f.memoryPolls++; f.memoryPolls < maxMemoryPolls && !f.completions.Pending() {
			return true
		}
		some = true
	}
	f.memoryPolls = 0
	return f.pollCompletions() || some
}

// pollCompletions handles the completions, and reports whether there were any.
func (f *Fabric) pollCompletions() bool {
	if f.shared != nil {
		return f.shared.Poll()
	}
	handled, err := f.completions.Poll(f.Complete)
	if err != nil {
		f.failAll(err)
	}
	return handled
}

// Block implements fabric.Fabric.
func (f *Fabric) Block(ctx context.Context) error {
	if rings := f.rings.Load(); rings != nil && len(*rings) > 0 {
		return f.completions.BlockUntil(ctx, f.hasRingPacket)
	}
	return f.completions.Block(ctx)
}

// Complete handles completions. The owner of the shared queue calls it with the engine's
// lock held; Poll and Block are not called then.
func (f *Fabric) Complete(wcs []verbs.WC) {
	for i := range wcs {
		f.handleCompletion(&wcs[i])
	}
	f.serveLinks()
	f.repostReceives()
}

func (f *Fabric) handleCompletion(wc *verbs.WC) {
	l := f.byQP[wc.QPN]
	kind, index, ordinal := unpackWRID(wc.WRID)
	if kind == wrRecv {
		f.handleReceiveCompletion(l, wc, index)
		return
	}
	cause := wc.Err()
	if cause != nil && l != nil {
		cause = fabric.WrapLoss(l.rank, cause)
	}
	switch kind {
	case wrBuffer:
		f.sendBuffers.release(index)
	case wrTransfer:
		f.completePart(index, cause) // a no-op after failAll
	case wrStripe:
		f.handleStripe(wc, index)
	case wrProbe:
		if l != nil {
			l.probed = false
		}
	case wrStream:
		if l != nil && wc.Status == verbs.WCSuccess {
			l.stream.completeUpTo(index)
		}
	}
	if l == nil {
		return
	}
	if wc.Status != verbs.WCSuccess {
		f.failLink(l, cause)
		return
	}
	l.completed = ordinal + 1
	if l.stream != nil {
		f.serveLater(l)
	} else if l.coreWaiting {
		f.resumeLink(l)
	}
}

// handleReceiveCompletion handles the completion of a receive of a buffer, or of a stream's
// receive without a buffer.
func (f *Fabric) handleReceiveCompletion(l *link, wc *verbs.WC, index int) {
	buffers, ok := f.recvBuffers, wc.Status == verbs.WCSuccess && l != nil
	switch {
	case f.o.Flow == FlowShared:
	case !ok: // the queue pair has failed: its receives do not come back
		return
	case l.buffers != nil:
		buffers = l.buffers
		f.serveLater(l)
	}
	switch {
	case !ok:
	case l.stream != nil:
		l.stream.receives--
		f.serveLater(l)
		f.handleStreamReceive(l, wc)
		return
	case wc.Opcode == verbs.WCRecvRDMAWithImm:
		f.handleNotify(l, wc.Imm)
	default:
		f.handleReceive(l, buffers.buffer(index)[:wc.ByteLen])
	}
	buffers.release(index)
}

// serveLater makes serveLinks serve a link that has receives of its own.
func (f *Fabric) serveLater(l *link) {
	if !l.served {
		l.served = true
		f.servedLinks = append(f.servedLinks, l)
	}
}

// serveLinks posts the receives of links again, and resumes what waits in streams.
func (f *Fabric) serveLinks() {
	links := f.servedLinks
	for i := 0; i < len(links); i++ {
		l := links[i]
		l.served = false
		switch {
		case l.failed:
		case l.stream != nil:
			f.serveStream(l)
		default:
			if err := l.buffers.repost(); err != nil {
				f.failLink(l, err)
			}
		}
	}
	f.servedLinks = links[:0]
}

// handleReceive handles the content of a receive buffer: one or more coalesced packets.
func (f *Fabric) handleReceive(l *link, b []byte) {
	for first := true; len(b) > 0 && !l.failed; first = false {
		if len(b) < envelope.Size {
			f.failLink(l, fmt.Errorf("%w: %d bytes", envelope.ErrMalformed, len(b)))
			return
		}
		n := envelope.Size + int(binary.LittleEndian.Uint32(b[28:])) // Header.Bytes
		if n < 0 || n > len(b) {
			f.failLink(l, fmt.Errorf("%w: packet of %d bytes in a message of %d", envelope.ErrMalformed, n, len(b)))
			return
		}
		f.handlePacket(l, b[:envelope.Size], b[envelope.Size:n], first)
		b = b[min(len(b), paddedSize(n)):]
	}
	f.returnCreditsIfDue(l)
}

// handleNotify handles the immediate data of an RDMA WRITE, which consumed a receive
// without using its buffer.
func (f *Fabric) handleNotify(l *link, notice uint32) {
	if l.failed {
		return
	}
	if l.stream != nil {
		l.stream.unread++
	} else {
		l.unreturnedCredits++
	}
	if err := f.host.Core().HandleNotify(l.rank, notice); err != nil {
		f.failLink(l, err)
		return
	}
	f.returnCreditsIfDue(l)
}

// handlePacket handles a packet. Only the first packet of a buffer uses a credit.
func (f *Fabric) handlePacket(l *link, header, payload []byte, first bool) {
	h := &f.header
	if err := h.Unmarshal(header); err != nil {
		f.failLink(l, err)
		return
	}
	if int(h.Source) != l.rank || int(h.Bytes) != len(payload) {
		f.failLink(l, fmt.Errorf("%w: payload of %d bytes, header has %d bytes of rank %d", envelope.ErrMalformed, len(payload), h.Bytes, h.Source))
		return
	}
	if int(h.Credits)+int(l.credits) > f.o.Credits {
		f.failLink(l, fmt.Errorf("%w: %d credits returned in excess", envelope.ErrMalformed, int(h.Credits)+int(l.credits)-f.o.Credits))
		return
	}
	l.credits += h.Credits
	if first && h.Kind != envelope.Credit { // Credit packets use no credit
		l.unreturnedCredits++
	}
	switch h.Kind {
	case envelope.Hello:
		f.handleHello(l)
	case envelope.Bye:
		l.peerDisconnecting = true
	}
	if err := f.host.Core().HandlePacket(l.rank, h, payload); err != nil {
		f.failLink(l, err)
		return
	}
	if l.coreWaiting && h.Credits > 0 {
		f.resumeLink(l)
	}
}

// returnCreditsIfDue sends a Credit packet if half of the credits are unreturned.
func (f *Fabric) returnCreditsIfDue(l *link) {
	if int(l.unreturnedCredits) >= f.o.Credits/2 {
		f.sendCredits(l)
	}
}

// sendCredits returns credits in the pending batch, or in a packet of its own.
func (f *Fabric) sendCredits(l *link) {
	if !l.up || l.freeSendSlots() == 0 {
		return // later
	}
	if l.batch.n > 0 && f.flushBatch(l) {
		return // the batch returned the credits
	}
	h := envelope.Header{Kind: envelope.Credit, Source: uint32(f.rank), Credits: l.unreturnedCredits}
	h.MarshalTo(f.frame[:])
	f.wr[0] = verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendInline | verbs.SendSignaled, InlineData: f.frame[:envelope.Size], WRID: l.nextWRID(wrInline, 0)}
	if f.postWR(l) {
		l.unreturnedCredits = 0
		f.stats.creditPackets++
	}
}

// repostReceives reposts used receives, and resumes links that wait for a send buffer.
func (f *Fabric) repostReceives() {
	if err := f.recvBuffers.repost(); err != nil {
		f.failAll(err)
	}
	for len(f.bufferWaiters) > 0 && f.sendBuffers.available() > 0 {
		rank := f.bufferWaiters[0]
		f.bufferWaiters = f.bufferWaiters[:copy(f.bufferWaiters, f.bufferWaiters[1:])]
		f.links[rank].waitsForBuffer = false
		f.host.Core().Resume(rank)
	}
}
