package datagram

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/internal/hostaddr"
	"github.com/softrnic/softrnic/internal/nack"
	"github.com/softrnic/softrnic/internal/sparse"
	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/verbs"
)

// A Port is a UD queue pair with a nack.Core. It is not safe for concurrent
// use, except for waiting on CQ.
type Port struct {
	Core *nack.Core
	PD   verbs.PD
	CQ   verbs.CQ
	QP   verbs.QP

	opts  Options
	at    Address
	recvs recvBuffers
	srq   verbs.SRQ
	slabs []verbs.MR // memory of Core
	start time.Time

	peers sparse.Table[destination]
	ahs   map[netip.AddrPort]verbs.AH

	// Send queue.
	posted, completed uint32        // work requests
	packets           []nack.Packet // up to burst
	wrs               []verbs.SendWR
	sges              []verbs.SGE

	repost []verbs.RecvWR

	refusals refusals
}

// A destination is the address of a peer.
type destination struct {
	ah        verbs.AH // shared by all peers of an adapter
	qpn, qkey uint32
	mtu       int                 // longest datagram to the peer in bytes
	refused   *verbs.RefusedError // last refusal, or nil
	refusedAt nack.Time
}

// Open creates a port on a device. Closing the port does not close the device.
func Open(dev verbs.Device, o Options) (_ *Port, err error) {
	attr, err := dev.QueryPort(1)
	if err != nil {
		return nil, err
	}
	gid, err := dev.QueryGID(1, 0)
	if err != nil {
		return nil, err
	}
	o.setDefaults()
	const first = 4
	p := &Port{opts: o, start: vtime.Now(), ahs: map[netip.AddrPort]verbs.AH{}, peers: sparse.Make[destination](o.Peers),
		packets: make([]nack.Packet, first), wrs: make([]verbs.SendWR, first), sges: make([]verbs.SGE, first)}
	p.at = Address{At: netip.AddrPortFrom(gid.GID.Addr(), attr.UDPPort), Epoch: o.Epoch, MTU: attr.ActiveMTU.Bytes()}
	defer func() {
		if err != nil {
			_ = p.Close()
		}
	}()
	p.Core = nack.New(nack.Options{Self: o.Self, Peers: o.Peers, Epoch: o.Epoch, MTU: p.at.MTU, MaxMessage: o.MaxMessage,
		Slots: o.Packets, AddSlab: p.addSlab, Short: inlineMax, ReorderBytes: o.ReorderBytes, GiveUp: int64(o.GiveUp)})
	if p.PD, err = dev.AllocPD(); err != nil {
		return nil, err
	}
	if p.srq, err = p.PD.CreateSRQ(verbs.SRQInitAttr{MaxWR: o.Receives, MaxSGE: 1}); err != nil {
		return nil, err
	}
	init := verbs.QPInitAttr{Type: verbs.UD, SelectiveSignaling: true, SRQ: p.srq,
		Cap: verbs.QPCap{MaxSendWR: sendQueue, MaxSendSGE: 1, MaxInlineData: inlineMax}}
	if o.QueuePair != nil {
		o.QueuePair(&init)
	}
	if p.CQ, err = dev.CreateCQ(init.Cap.MaxSendWR + init.MaxDatagramRDMA + o.Receives + 1); err != nil {
		return nil, err
	}
	init.SendCQ, init.RecvCQ = p.CQ, p.CQ
	if p.QP, err = p.PD.CreateQP(init); err != nil {
		return nil, err
	}
	p.watchRefusals()
	return p, p.activateQP()
}

// activateQP posts the receives and brings the queue pair to RTS.
func (p *Port) activateQP() (err error) {
	var random [4]byte
	rand.Read(random[:])
	p.at.QPN = p.QP.Num()
	p.at.QKey = binary.BigEndian.Uint32(random[:]) &^ (1 << 31) // a Q_Key with the top bit selects the sender's own
	if err := p.QP.Modify(verbs.QPAttr{State: verbs.StateInit, PortNum: 1, QKey: p.at.QKey},
		verbs.AttrState|verbs.AttrPKeyIndex|verbs.AttrPort|verbs.AttrQKey); err != nil {
		return err
	}
	p.recvs.size = (GRHLen + p.at.MTU + 63) &^ 63
	if err := p.addReceives(p.opts.FirstReceives); err != nil {
		return err
	}
	return verbs.ActivateUD(p.QP, p.at.QKey, 0)
}

// Address returns the address of the port.
func (p *Port) Address() Address { return p.at }

// Now returns the time of the core's clock, which is never 0.
func (p *Port) Now() nack.Time { return nack.Time(vtime.Since(p.start)) + 1 }

// ConnectPeer sets the address of a peer and opens it in the core.
func (p *Port) ConnectPeer(number int, a Address) error {
	if err := a.validate(); err != nil {
		return err
	}
	ah, err := p.AddressHandle(a.At)
	if err != nil {
		return err
	}
	mtu := min(a.MTU, p.at.MTU, adapter.FitPathMTU(p.QP, ah.Attr(), verbs.MTU4096).Bytes())
	*p.peers.Get(number) = destination{ah: ah, qpn: a.QPN, qkey: a.QKey, mtu: mtu}
	p.Core.OpenPeer(p.Now(), number, nack.Peer{Epoch: a.Epoch, MTU: mtu})
	return nil
}

// PeerMTU returns the length in bytes of the longest datagram to a connected
// peer: the minimum of both ports' MTUs and, if known, the path MTU.
func (p *Port) PeerMTU(number int) int { return p.peers.Get(number).mtu }

// AddressHandle returns the shared address handle of an adapter.
func (p *Port) AddressHandle(at netip.AddrPort) (verbs.AH, error) {
	at = hostaddr.CanonicalPort(at)
	if ah := p.ahs[at]; ah != nil {
		return ah, nil
	}
	ah, err := p.PD.CreateAH(verbs.AHAttr{DGID: verbs.GIDFromAddr(at.Addr()), UDPPort: at.Port()})
	if err == nil {
		p.ahs[at] = ah
	}
	return ah, err
}

// AddressHandleCount returns the number of address handles.
func (p *Port) AddressHandleCount() int { return len(p.ahs) }

// reportFailure reports that the queue pair has failed.
func (p *Port) reportFailure(err error) {
	if p.opts.OnFailure != nil {
		p.opts.OnFailure(err)
	}
}

// Close releases all resources of the port, also of one that Open created
// partly.
func (p *Port) Close() (err error) {
	try := func(what string, failed error) {
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", what, failed))
		}
	}
	if p.QP != nil {
		try("queue pair", p.QP.Close())
	}
	for _, ah := range p.ahs {
		try("address handle", ah.Close())
	}
	if p.CQ != nil {
		try("completion queue", p.CQ.Close())
	}
	if p.srq != nil {
		try("shared receive queue", p.srq.Close())
	}
	for _, mr := range p.recvs.slabs {
		try("receives", mr.Close())
	}
	for _, mr := range p.slabs {
		try("packets", mr.Close())
	}
	if p.PD != nil {
		try("protection domain", p.PD.Close())
	}
	return err
}
