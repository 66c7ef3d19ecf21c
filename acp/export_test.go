package acp

import "github.com/softrnic/softrnic/acp/protocol"

// SayPlaced has a sending end say that a message of n bytes is in its place, where it has not put any.
func (ch *Channel) SayPlaced(n int) bool {
	ch.p.mu.Lock()
	defer ch.p.unlock()
	g, ok := ch.send.Place()
	if ok {
		ch.p.start(ch.putHeader(ch.ring(g.Ring), uint64(n)|protocol.Placed, (*answering)(ch)))
		ch.tell()
		ch.p.flush()
	}
	return ok
}
