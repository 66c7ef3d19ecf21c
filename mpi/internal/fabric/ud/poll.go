package ud

import (
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/internal/nack"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/verbs"
)

// Poll implements fabric.Fabric.
func (f *Fabric) Poll() bool {
	f.Flush()
	some := f.pollCompletions()
	if some {
		f.dispatchAndTransmit()
	}
	return some
}

// pollCompletions handles the completions, and reports whether there were any.
func (f *Fabric) pollCompletions() bool {
	some, err := f.completions.Poll(f.handleCompletions)
	if err != nil {
		f.failAll(err)
	}
	return some
}

// Block implements fabric.Fabric.
func (f *Fabric) Block(ctx context.Context) error { return f.completions.Block(ctx) }

// Complete handles completions of Queue, with the engine's lock held; see
// pollShared of NewPart.
func (f *Fabric) Complete(wcs []verbs.WC) {
	f.handleCompletions(wcs)
	f.dispatchAndTransmit()
}

func (f *Fabric) handleCompletions(wcs []verbs.WC) {
	f.dispatching = true
	f.port.HandleCompletions(wcs)
	f.dispatching = false
}

// handleDatagram handles a received datagram.
func (f *Fabric) handleDatagram(now nack.Time, wc *verbs.WC, _, packet []byte) {
	from, ok := nack.ParseFrom(packet)
	rank := int(from)
	if !ok || rank >= f.ranks || rank == f.rank {
		f.stats.unknownSenders++
		return
	}
	if l := f.links.Get(rank); l.state == stateOpen && wc.SrcQPN != l.qpn {
		f.stats.unknownSenders++
		return
	}
	f.startLookup(rank) // to be able to reply
	f.from = rank
	f.core.HandlePacket(now, rank, packet, f.deliver)
}

// handleMessage handles a complete message of the NACK core.
func (f *Fabric) handleMessage(b []byte) {
	var h envelope.Header
	err := h.Unmarshal(b)
	if err == nil {
		payload := b[envelope.Size:]
		if int(h.Source) != f.from || int64(h.Bytes) != int64(len(payload)) {
			err = fmt.Errorf("%w: payload of %d bytes, header has %d bytes of rank %d", envelope.ErrMalformed, len(payload), h.Bytes, h.Source)
		} else {
			err = f.host.Core().HandlePacket(f.from, &h, payload)
		}
	}
	if err != nil {
		f.stats.malformed++
		f.failRank(f.from, err)
	}
}

// Causes of a rank's failure.
var (
	errRestarted = errors.New("peer restarted")
	errTimeout   = errors.New("no reply")
	errProtocol  = errors.New("protocol violation in the NACK protocol")
)

// timeoutError returns the error of a rank that does not reply: the system's ICMP error
// for packets to it, or otherwise the timeout.
func (f *Fabric) timeoutError(rank int) error {
	if cause := f.port.LastRefusal(rank); cause != nil {
		return fabric.WrapLoss(rank, fmt.Errorf("%w: %w", errTimeout, cause))
	}
	return fmt.Errorf("%w for %v", errTimeout, f.o.GiveUp)
}

// dispatchAndTransmit handles pending peer events and sends queued packets.
func (f *Fabric) dispatchAndTransmit() {
	f.dispatching = true
	f.port.HandleRefusals()
	for e, ok := f.core.NextEvent(); ok; e, ok = f.core.NextEvent() {
		switch e.Kind {
		case nack.Writable:
			f.host.Core().Resume(e.Peer)
		case nack.Restarted:
			f.failRank(e.Peer, errRestarted)
		case nack.TimedOut:
			f.failRank(e.Peer, f.timeoutError(e.Peer))
		case nack.ProtocolError:
			f.failRank(e.Peer, errProtocol)
		}
	}
	f.dispatching = false
	f.sendPending(f.clock())
}
