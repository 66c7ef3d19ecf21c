package qp

import (
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/wire"
)

// A SelectivePool has the memory of selective retransmission that is not in use, of queue pairs that
// share a lock. A queue pair uses some only while packets are missing. The zero value is empty.
type SelectivePool struct {
	scoreboards reliability.ScoreboardPool
	kept        []*keptRequests
	packets     []*keptRequest
	ack         wire.SelectiveAck // of the current call
}

const (
	maxPooledKept     = 16   // sets of requests that a pool keeps
	maxPooledRequests = 1024 // requests for which one of them has memory
	maxPooledPackets  = 512  // packets that a pool keeps, of up to the path MTU
)

// allocKept returns an empty set of requests.
func (p *SelectivePool) allocKept() *keptRequests {
	if n := len(p.kept); n > 0 {
		k := p.kept[n-1]
		p.kept = p.kept[:n-1]
		return k
	}
	return &keptRequests{pool: p, requests: make(map[wire.PSN]*keptRequest)}
}

// freeKept takes back k, which is empty.
func (p *SelectivePool) freeKept(k *keptRequests) {
	k.arrivals.Reset()
	k.pkt = wire.Packet{}
	if len(p.kept) < maxPooledKept && k.most <= maxPooledRequests {
		p.kept = append(p.kept, k)
	}
}

// allocPacket returns a packet with undefined contents.
func (p *SelectivePool) allocPacket() *keptRequest {
	if n := len(p.packets); n > 0 {
		r := p.packets[n-1]
		p.packets = p.packets[:n-1]
		return r
	}
	return new(keptRequest)
}

// freePacket takes back r.
func (p *SelectivePool) freePacket(r *keptRequest) {
	if len(p.packets) < maxPooledPackets {
		p.packets = append(p.packets, r)
	}
}
