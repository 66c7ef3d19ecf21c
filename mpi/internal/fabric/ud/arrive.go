package ud

import (
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/reliability/nack"
	"github.com/softrnic/softrnic/verbs"
)

// Poll implements fabric.Fabric.
func (f *Fabric) Poll() (some bool) {
	f.Flush()
	for {
		n := f.ready
		f.ready = 0
		if n == 0 {
			n = f.poll(f.wcs[:])
		}
		if n > 0 {
			some = true
			f.look(f.wcs[:n])
		}
		if n < len(f.wcs) {
			break
		}
	}
	if some {
		f.settle()
	}
	return some
}

func (f *Fabric) poll(wcs []verbs.WC) int {
	n, err := f.port.CQ.Poll(wcs)
	if err != nil {
		f.fail(err)
	}
	return n
}

// Block implements fabric.Fabric.
func (f *Fabric) Block(ctx context.Context) error {
	f.blocked.Store(true)
	defer f.blocked.Store(false)
	n, err := f.port.CQ.PollWait(ctx, f.wcs[:])
	f.ready = n
	if n > 0 || errors.Is(err, verbs.ErrCQOverrun) {
		return nil
	}
	return err
}

// Complete handles completions of Queue, with the engine's lock: see Options.Look.
func (f *Fabric) Complete(wcs []verbs.WC) {
	f.look(wcs)
	f.settle()
}

// look handles completions.
func (f *Fabric) look(wcs []verbs.WC) {
	f.inside = true
	f.port.Look(wcs)
	f.inside = false
}

// arrived handles a datagram.
func (f *Fabric) arrived(now nack.Time, wc *verbs.WC, _, packet []byte) {
	from, ok := nack.From(packet)
	rank := int(from)
	if !ok || rank >= len(f.links) || rank == f.rank || f.links[rank].state == open && wc.SrcQPN != f.links[rank].qpn {
		f.stats.strangers++
		return
	}
	f.seek(rank) // to be able to answer
	f.from = rank
	f.core.Handle(now, rank, packet, f.deliver)
}

// message handles a packet of the core that is complete.
func (f *Fabric) message(b []byte) {
	var h envelope.Header
	err := h.Unmarshal(b)
	if err == nil {
		payload := b[envelope.Size:]
		if int(h.Source) != f.from || int64(h.Bytes) != int64(len(payload)) {
			err = fmt.Errorf("%w: payload of %d bytes, it says %d, of rank %d", envelope.ErrMalformed, len(payload), h.Bytes, h.Source)
		} else {
			err = f.host.Core().HandlePacket(f.from, &h, payload)
		}
	}
	if err != nil {
		f.stats.refused++
		f.lose(f.from, err)
	}
}

// What may become of ranks.
var (
	errRestarted = errors.New("it has been started anew")
	errSilent    = errors.New("no answer")
	errBreach    = errors.New("its packets do not fit together")
)

// silent is the error of a rank that does not answer: what the system says of packets to
// it, or else for how long.
func (f *Fabric) silent(rank int) error {
	if why := f.port.Refusal(rank); why != nil {
		return fabric.NewLoss(rank, fmt.Errorf("%w: %w", errSilent, why))
	}
	return fmt.Errorf("%w for %v", errSilent, f.o.GiveUp)
}

// settle heeds what has become of ranks, and sends what is to be sent.
func (f *Fabric) settle() {
	f.inside = true
	f.port.HandleRefusals()
	for e, ok := f.core.Next(); ok; e, ok = f.core.Next() {
		switch e.Kind {
		case nack.Writable:
			f.host.Core().Resume(e.Peer)
		case nack.Restarted:
			f.lose(e.Peer, errRestarted)
		case nack.Lost:
			f.lose(e.Peer, f.silent(e.Peer))
		case nack.Broken:
			f.lose(e.Peer, errBreach)
		}
	}
	f.inside = false
	f.drain(f.now())
}
