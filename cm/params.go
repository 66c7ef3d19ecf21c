package cm

import (
	"cmp"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// Params are the parameters of a connection's remote side and of the path, from the REQ or REP.
type Params struct {
	Transport verbs.QPType // RC or UC
	QPN       uint32       // the peer's queue pair number
	PSN       uint32       // starting PSN of the local send queue

	ResponderResources uint8 // RDMA READs and atomics that the peer serves at a time
	InitiatorDepth     uint8 // RDMA READs and atomics that the peer issues at a time
	RetryCount         uint8 // for the local queue pair (REQ only)
	RNRRetry           uint8 // for the local queue pair
	FlowControl        bool  // the peer sends end-to-end credits
	SRQ                bool  // the peer has a shared receive queue

	AckTimeout time.Duration // for the local queue pair (REQ only); 0 waits forever
	AckDelay   time.Duration // target ACK delay of the peer (REP only)

	MTU          verbs.MTU // of the path
	TrafficClass uint8
	FlowLabel    uint32
	HopLimit     uint8
	SL           uint8
	PKey         uint16

	GUID       uint64 // of the peer's adapter
	PeerBuffer uint32 // receive buffer of the peer's socket in bytes, 0 if unknown
	Selective  bool   // the peer offers selective retransmission (REQ), or both ends use it (connection)
}

func paramsFromREQ(q *mad.REQ) Params {
	p := Params{
		Transport: verbs.RC, QPN: q.QPN, PSN: q.StartingPSN,
		ResponderResources: q.ResponderResources, InitiatorDepth: q.InitiatorDepth,
		RetryCount: q.RetryCount, RNRRetry: q.RNRRetry, FlowControl: q.FlowControl, SRQ: q.SRQ,
		AckTimeout: verbs.AckTimeout(q.Primary.AckTimeout), MTU: verbs.MTU(q.MTU), TrafficClass: q.Primary.TrafficClass,
		FlowLabel: q.Primary.FlowLabel, HopLimit: q.Primary.HopLimit, SL: q.Primary.SL, PKey: q.PKey,
		GUID: q.CAGUID, PeerBuffer: decodeBuffer(q.LocalEECN),
	}
	p.Selective = p.PeerBuffer > 0 && q.RemoteEECN&offersSelective != 0
	if q.Transport == mad.TransportUC {
		p.Transport, p.Selective = verbs.UC, false
	}
	return p
}

// paramsFromREP combines the REP of the peer with the path parameters of the local REQ.
func paramsFromREP(q *mad.REQ, r *mad.REP) Params {
	p := Params{
		Transport: verbs.RC, QPN: r.QPN, PSN: r.StartingPSN,
		ResponderResources: r.ResponderResources, InitiatorDepth: r.InitiatorDepth,
		RNRRetry: r.RNRRetry, FlowControl: r.FlowControl, SRQ: r.SRQ, AckDelay: time.Duration(mad.TimeoutNanos(r.TargetAckDelay)),
		MTU: verbs.MTU(q.MTU), TrafficClass: q.Primary.TrafficClass,
		FlowLabel: q.Primary.FlowLabel, HopLimit: q.Primary.HopLimit, SL: q.Primary.SL, PKey: q.PKey,
		GUID: r.CAGUID,
	}
	if q.LocalEECN != 0 { // the field is defined only if the REQ had it
		p.PeerBuffer = decodeBuffer(r.LocalEECN)
		p.Selective = q.RemoteEECN&offersSelective != 0 && r.LocalEECN&usesSelective != 0
	}
	if q.Transport == mad.TransportUC {
		p.Transport = verbs.UC
	}
	return p
}

// Two softrnics exchange the sizes of their socket receive buffers, so that neither overruns the
// other. The size is carried in KiB in the local EECN of REQ and REP. End-to-end contexts exist
// only for reliable datagrams, which no current adapter supports, so other adapters send 0 and
// ignore the field. A REP carries the size if its REQ did.

// encodeBuffer returns the local EECN that advertises a receive buffer, 0 if the size is unknown
// or less than 1 KiB.
func encodeBuffer(bytes uint32) (eecn uint32) { return bytes >> 10 }

// decodeBuffer returns the size in bytes of the receive buffer that a local EECN of 24 bits
// advertises, 0 if there is none.
func decodeBuffer(eecn uint32) (bytes uint32) { return eecn & (1<<22 - 1) << 10 }

// Two softrnics agree on selective retransmission in the same fields: a REQ that has a receive
// buffer offers it in its remote EECN, which earlier versions ignore, and the REP accepts it in its
// local EECN only then.
const (
	offersSelective = 1       // remote EECN of the REQ
	usesSelective   = 1 << 23 // local EECN of the REP
)

// withPathOptions returns p with the path parameters that o sets.
func (p Params) withPathOptions(o *verbs.ConnectOptions) Params {
	p.TrafficClass = cmp.Or(o.TrafficClass, p.TrafficClass)
	p.FlowLabel = cmp.Or(o.FlowLabel, p.FlowLabel)
	p.HopLimit = cmp.Or(o.HopLimit, p.HopLimit)
	p.SL = cmp.Or(o.SL, p.SL)
	return p
}

// addressVector returns the address vector of the connection.
func (p *Params) addressVector(peer netip.AddrPort) verbs.AHAttr {
	return verbs.AHAttr{
		DGID: verbs.GIDFromAddr(peer.Addr()), UDPPort: peer.Port(), TrafficClass: p.TrafficClass, FlowLabel: p.FlowLabel,
		HopLimit: p.HopLimit, SL: p.SL, PortNum: 1, PeerBuffer: p.PeerBuffer, Selective: p.Selective,
	}
}
