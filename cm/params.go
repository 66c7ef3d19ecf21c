package cm

import (
	"cmp"
	"net/netip"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// Params is what a peer said about its end of a connection and the path.
type Params struct {
	Transport verbs.QPType // RC or UC
	QPN       uint32       // the peer's queue pair
	PSN       uint32       // the first that we send

	ResponderResources uint8 // reads and atomics that the peer serves at a time
	InitiatorDepth     uint8 // reads and atomics that the peer wants outstanding
	RetryCount         uint8 // for our queue pair (REQ only)
	RNRRetry           uint8 // for our queue pair
	FlowControl        bool  // the peer gives end-to-end credits
	SRQ                bool  // the peer has a shared receive queue
	AckTimeout         uint8 // for our queue pair (REQ only); 4.096 us * 2^n
	AckDelay           uint8 // of the peer (REP only); 4.096 us * 2^n

	MTU          verbs.MTU // of the path
	TrafficClass uint8
	FlowLabel    uint32
	HopLimit     uint8
	SL           uint8
	PKey         uint16

	GUID       uint64 // of the peer's adapter
	PeerBuffer uint32 // receive buffer of the peer's socket in bytes, 0 if not told
}

func paramsFromREQ(q *mad.REQ) Params {
	p := Params{
		Transport: verbs.RC, QPN: q.QPN, PSN: q.StartingPSN,
		ResponderResources: q.ResponderResources, InitiatorDepth: q.InitiatorDepth,
		RetryCount: q.RetryCount, RNRRetry: q.RNRRetry, FlowControl: q.FlowControl, SRQ: q.SRQ,
		AckTimeout: q.Primary.AckTimeout, MTU: verbs.MTU(q.MTU), TrafficClass: q.Primary.TrafficClass,
		FlowLabel: q.Primary.FlowLabel, HopLimit: q.Primary.HopLimit, SL: q.Primary.SL, PKey: q.PKey,
		GUID: q.CAGUID, PeerBuffer: mad.BufferOfEECN(q.LocalEECN),
	}
	if q.Transport == mad.TransportUC {
		p.Transport = verbs.UC
	}
	return p
}

// paramsFromREP adds what a REP says to what our REQ said.
func paramsFromREP(q *mad.REQ, r *mad.REP) Params {
	p := Params{
		Transport: verbs.RC, QPN: r.QPN, PSN: r.StartingPSN,
		ResponderResources: r.ResponderResources, InitiatorDepth: r.InitiatorDepth,
		RNRRetry: r.RNRRetry, FlowControl: r.FlowControl, SRQ: r.SRQ, AckDelay: r.TargetAckDelay,
		MTU: verbs.MTU(q.MTU), TrafficClass: q.Primary.TrafficClass,
		FlowLabel: q.Primary.FlowLabel, HopLimit: q.Primary.HopLimit, SL: q.Primary.SL, PKey: q.PKey,
		GUID: r.CAGUID,
	}
	if q.LocalEECN != 0 { // else it means nothing
		p.PeerBuffer = mad.BufferOfEECN(r.LocalEECN)
	}
	if q.Transport == mad.TransportUC {
		p.Transport = verbs.UC
	}
	return p
}

// withPathOptions replaces what options say of the path.
func (p Params) withPathOptions(o *verbs.ConnectOptions) Params {
	p.TrafficClass = cmp.Or(o.TrafficClass, p.TrafficClass)
	p.FlowLabel = cmp.Or(o.FlowLabel, p.FlowLabel)
	p.HopLimit = cmp.Or(o.HopLimit, p.HopLimit)
	p.SL = cmp.Or(o.SL, p.SL)
	return p
}

// addressVector is the address vector of a connection.
func (p *Params) addressVector(peer netip.AddrPort) verbs.AHAttr {
	return verbs.AHAttr{
		DGID: verbs.GIDFromAddr(peer.Addr()), UDPPort: peer.Port(), TrafficClass: p.TrafficClass, FlowLabel: p.FlowLabel,
		HopLimit: p.HopLimit, SL: p.SL, PortNum: 1, PeerBuffer: p.PeerBuffer,
	}
}
