package rdm

import (
	"github.com/softrnic/softrnic/internal/nack"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// handleDatagram demultiplexes a received datagram: by its source to a peer, and
// by its first byte to the handshake or to the NACK core, which calls
// handleMessage for each complete message.
func (e *Endpoint) handleDatagram(now nack.Time, wc *verbs.WC, grh, b []byte) {
	addr, _, _, ok := wire.ParseGRH(grh)
	if !ok || e.err != nil {
		e.stats.UnknownSenders++
		return
	}
	src := incarnation{addr, wc.SrcQPN}
	p := e.lastPeer
	if p == nil || incarnationOf(&p.at) != src {
		p = e.byIncarnation[src]
	}
	if _, packet := nack.ParseFrom(b); p == nil || !packet || b[0] == handshakeMagic[0] {
		e.handleHandshake(src, b)
		return
	}
	e.lastPeer = p
	if p.state == connecting {
		e.markConnected(p)
	}
	if e.inbox.bytes >= e.o.Backlog && b[1] == byte(nack.Data) {
		e.stats.BacklogDrops++
		return
	}
	e.sender = p
	e.core.HandlePacket(now, p.number, b, e.deliver)
}

// handleMessage handles a message of e.sender: a message for Recv, or one of an
// operation.
func (e *Endpoint) handleMessage(b []byte) {
	switch {
	case len(b) < tagSize:
		e.failProtocol(e.sender)
	case b[0] == tagMessage:
		e.inbox.push(e.sender, b[tagSize:])
		e.changed = true
	default:
		e.handleOpMessage(e.sender, b)
	}
}

// failProtocol fails a peer that violated the protocol.
func (e *Endpoint) failProtocol(p *Peer) {
	e.stats.Malformed++
	e.failPeer(p, ErrProtocol)
}

// handleOpMessage handles a message of an operation: a request of the peer, or the
// reply to a local operation.
func (e *Endpoint) handleOpMessage(p *Peer, b []byte) {
	var r opMessage
	payload, ok := r.decode(b)
	if !ok {
		e.failProtocol(p)
		return
	}
	switch r.tag {
	case tagData, tagEnd:
		e.handleReply(p, &r, payload)
	case tagToken:
		e.handleToken(p, &r)
	default:
		e.serveRequest(p, &r, payload)
	}
}
