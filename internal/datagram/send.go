package datagram

import (
	"github.com/softrnic/softrnic/internal/nack"
	"github.com/softrnic/softrnic/verbs"
)

const (
	sendQueue   = 256 // work requests
	burst       = Burst
	inlineMax   = 256 // maximum datagram sent inline, in bytes
	signalEvery = 32  // inline sends per signaled one
)

// Burst is the maximum number of datagrams posted at a time.
const Burst = 32

// Kinds of work requests, in the top byte of the WRID. 24 bits of an index and 32
// bits of the position in the send queue follow.
const (
	wrRecv   = iota + 1 // index of the receive buffer
	wrInline            // no index
	wrSlot              // index of the core's slot
)

func makeWRID(kind, index int, ordinal uint32) uint64 {
	return uint64(kind)<<56 | uint64(index)<<32 | uint64(ordinal)
}

func splitWRID(id uint64) (kind, index int, ordinal uint32) {
	return int(id >> 56), int(id >> 32 & 0xffffff), uint32(id)
}

// SendPending sends the packets of the core while the send queue has space.
// HandleCompletions releases space; call SendPending again after it.
func (p *Port) SendPending(now nack.Time) {
	for {
		room := min(len(p.packets), sendQueue-int(p.posted-p.completed))
		n := p.Core.Drain(now, p.packets[:room])
		if n == 0 {
			return
		}
		p.postPackets(n)
		if n == len(p.packets) && n < burst {
			p.packets, p.wrs, p.sges = make([]nack.Packet, 2*n), make([]verbs.SendWR, 2*n), make([]verbs.SGE, 2*n)
		}
	}
}

// postPackets posts the first n packets. Short ones are copied; the slots of
// the others are in use until their completion.
func (p *Port) postPackets(n int) {
	for i := range p.packets[:n] {
		k, wr := &p.packets[i], &p.wrs[i]
		to := p.peers.Get(k.Peer)
		ordinal := p.posted + uint32(i)
		*wr = verbs.SendWR{Opcode: verbs.WRSend, AH: to.ah, RemoteQPN: to.qpn, RemoteQKey: to.qkey}
		if k.Solicited {
			wr.Flags = verbs.SendSolicited
		}
		if fitsInline(k) {
			wr.Flags, wr.InlineData, wr.WRID = wr.Flags|verbs.SendInline, k.Bytes, makeWRID(wrInline, 0, ordinal)
			if ordinal%signalEvery == 0 {
				wr.Flags |= verbs.SendSignaled
			}
			continue
		}
		p.sges[i] = p.slabs[k.Slab].SGE(k.At, len(k.Bytes))
		wr.Flags, wr.SGList, wr.WRID = wr.Flags|verbs.SendSignaled, p.sges[i:i+1], makeWRID(wrSlot, k.Slot, ordinal)
	}
	took, err := p.QP.PostSend(p.wrs[:n])
	p.posted += uint32(took)
	for i := range p.packets[:n] {
		if k := &p.packets[i]; i >= took || fitsInline(k) {
			p.Core.ReleaseSlot(k.Slot)
		}
	}
	if err != nil {
		p.reportFailure(err)
	}
}

// addSlab allocates and registers a slab of the core.
func (p *Port) addSlab(length int) ([]byte, error) {
	mr, err := p.PD.RegMR(make([]byte, length), 0)
	if err != nil {
		return nil, err
	}
	p.slabs = append(p.slabs, mr)
	return mr.Bytes(), nil
}

func fitsInline(k *nack.Packet) bool { return k.Slot < 0 || len(k.Bytes) <= inlineMax }

// SendUnreliable sends a datagram of up to 256 bytes without the core. It may
// be lost, and is dropped if the send queue is full. It raises a solicited
// event at the receiver.
func (p *Port) SendUnreliable(a Address, b []byte) error {
	if p.posted-p.completed >= sendQueue {
		return nil
	}
	ah, err := p.AddressHandle(a.At)
	if err != nil {
		return err
	}
	wr := verbs.SendWR{Opcode: verbs.WRSend, AH: ah, RemoteQPN: a.QPN, RemoteQKey: a.QKey, InlineData: b,
		Flags: verbs.SendInline | verbs.SendSolicited, WRID: makeWRID(wrInline, 0, p.posted)}
	if p.posted%signalEvery == 0 {
		wr.Flags |= verbs.SendSignaled
	}
	p.wrs[0] = wr
	took, err := p.QP.PostSend(p.wrs[:1])
	p.posted += uint32(took)
	return err
}
