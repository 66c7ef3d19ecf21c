package rdm

import (
	"github.com/softrnic/softrnic/internal/place"
	"github.com/softrnic/softrnic/verbs"
)

// A reply is a queued reply to a peer: END, or n bytes of memory.
type reply struct {
	opMessage
	from []byte // remaining read data; nil: END
	key  uint32 // key of its region
}

// serveRequest executes an operation of a peer.
func (e *Endpoint) serveRequest(p *Peer, r *opMessage, payload []byte) {
	s := p.ensureRDMA()
	if s.replies.Len() >= maxAwaiting {
		e.failProtocol(p)
		return
	}
	need, n := verbs.AccessRemoteAtomic, uint64(8)
	switch r.tag {
	case tagRead:
		need, n = verbs.AccessRemoteRead, uint64(r.n)
	case tagWrite:
		need, n = verbs.AccessRemoteWrite, uint64(len(payload))
	}
	var mem []byte
	st := statusDenied
	if p.access&need != 0 {
		mem, st = e.memory.lookup(r.rkey, r.addr, n, need)
	}
	response := reply{opMessage: opMessage{tag: tagEnd, id: r.id}}
	switch {
	case r.tag == tagWrite:
		if st == statusOK && !place.Copy(mem, payload) {
			st = statusFault
		}
		if st != statusOK && s.fault == statusOK {
			s.fault = st
		}
		if r.status == 0 {
			return // more fragments follow
		}
		st, s.fault = s.fault, statusOK
	case st != statusOK:
	case r.tag == tagRead:
		response.from, response.key = mem, r.rkey
	default:
		response.a, st = executeAtomic(r, mem)
	}
	response.status = st
	e.stats.Served++
	if st != statusOK {
		e.stats.Denied++
	}
	s.replies.Push(response)
	e.flushPending(p)
}

// executeAtomic executes the atomic r on mem and returns the original value.
func executeAtomic(r *opMessage, mem []byte) (old uint64, st status) {
	word, ok := place.Word64(mem)
	if !ok {
		return 0, statusAlign
	}
	ok = place.Try(func() {
		if r.tag == tagSwap {
			old = place.CompareSwap(word, r.a, r.b)
		} else {
			old = place.FetchAdd(word, r.a)
		}
	})
	if !ok {
		return 0, statusFault
	}
	return old, statusOK
}

// sendReplies sends the queued replies to a peer and reports whether all were
// sent.
func (e *Endpoint) sendReplies(p *Peer) bool {
	s := p.rdmaState
	for s.replies.Len() > 0 && p.state != failed {
		r := s.replies.Front()
		if r.from == nil {
			if !e.sendOpMessage(p, &r.opMessage, nil, false) {
				return false
			}
			s.replies.Pop()
			continue
		}
		if e.memory.regions[r.key] == nil { // deregistered in the meantime
			r.from, r.status = nil, statusKey
			continue
		}
		n := min(p.fragmentSize(), len(r.from))
		data := opMessage{tag: tagData, id: r.id, n: uint32(n), addr: r.addr}
		if !e.sendOpMessage(p, &data, r.from[:n], false) {
			if s.clearUnreadable() {
				r.from, r.status = nil, statusFault
				continue
			}
			return false
		}
		r.addr += uint64(n)
		if r.from = r.from[n:]; len(r.from) == 0 {
			s.replies.Pop()
		}
	}
	return p.state != failed
}
