package perftest

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/softrnic/softrnic/cmd/internal/closing"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
	"github.com/softrnic/softrnic/verbs"
)

// An endpoint has the verbs objects of one side. One completion queue serves the sends and
// receives of all queue pairs.
type endpoint struct {
	*plan
	dev     verbs.Device
	pd      verbs.PD
	mrs     []verbs.MR
	areas   []area
	pattern []byte            // the data that a queue pair sends
	access  verbs.AccessFlags // that the peer has
	cq      verbs.CQ
	srq     verbs.SRQ // or nil
	qps     []verbs.QP
	ahs     []verbs.AH // UD: lead to the peer

	mine, theirs []Keys
	udPeers      []udPeer // that the RDMA CM told
}

// roceUDPPort is the UDP port of RoCE v2.
const roceUDPPort = 4791

// portMTU returns the MTU of this side.
func (p *plan) portMTU(dev verbs.Device) (verbs.MTU, error) {
	port, err := dev.QueryPort(p.IBPort)
	switch {
	case err != nil:
		return 0, err
	case port.UDPPort != 0 && port.UDPPort != roceUDPPort && !p.RDMACM:
		return 0, fmt.Errorf("device listens on UDP port %d, want %d: the handshake cannot carry a UDP port", port.UDPPort, roceUDPPort)
	case p.MTU > port.ActiveMTU:
		return 0, option.Errorf("-m", "%d bytes are more than the port's MTU (%d)", p.MTU.Bytes(), port.ActiveMTU.Bytes())
	case p.MTU != 0:
		return p.MTU, nil
	}
	return port.ActiveMTU, nil
}

// newEndpoint opens an endpoint on dev. The plan must be negotiated. The caller must close it.
func newEndpoint(p *plan, dev verbs.Device) (*endpoint, error) {
	e := &endpoint{plan: p, dev: dev}
	if err := e.allocate(); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

func (e *endpoint) allocate() (err error) {
	if err := e.checkCapabilities(); err != nil {
		return err
	}
	if e.pd, err = e.dev.AllocPD(); err != nil {
		return err
	}
	if err := e.registerMemory(); err != nil {
		return err
	}
	if e.cq, err = e.dev.CreateCQ(e.QPs * (e.txDepth + e.rxDepth)); err != nil {
		return err
	}
	if e.UseSRQ && e.receives {
		if e.srq, err = e.pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: max(e.rxDepth, e.QPs), MaxSGE: 1}); err != nil {
			return err
		}
	}
	for i := range e.QPs {
		if err := e.addQP(i); err != nil {
			return err
		}
	}
	return nil
}

// checkCapabilities rejects options beyond the device's limits and resolves options that depend on
// them.
func (e *endpoint) checkCapabilities() error {
	limits := e.dev.QueryDevice()
	e.inline = min(e.inline, limits.MaxInlineData)
	switch most := limits.MaxQPRdAtom; {
	case !e.Test.fetches():
		e.OutReads = 1
	case e.OutReads == 0:
		e.OutReads = min(most, 255)
	case e.OutReads > most:
		return option.Errorf("-o", "the device takes at most %d", most)
	}
	if e.Connection == verbs.UD && e.Size > e.mtu.Bytes() && !e.All {
		if e.Size != Defaults(e.Test).Size {
			return option.Errorf("-s", "%d bytes are more than the MTU (%d), and a datagram is one packet", e.Size, e.mtu.Bytes())
		}
		fmt.Fprintf(e.Log, "Max msg size in UD is MTU %d\nChanging to this MTU\n", e.mtu.Bytes())
		e.Size = e.mtu.Bytes()
	}
	return nil
}

// addQP creates queue pair i in a state that accepts receives.
func (e *endpoint) addQP(i int) error {
	a := verbs.QPInitAttr{Type: e.Connection, SendCQ: e.cq, RecvCQ: e.cq, SRQ: e.srq, SelectiveSignaling: true,
		Cap: verbs.QPCap{MaxSendWR: e.txDepth, MaxSendSGE: 1, MaxInlineData: e.inline}}
	if e.srq == nil && e.receives {
		a.Cap.MaxRecvWR, a.Cap.MaxRecvSGE = max(e.rxDepth, e.RecvPostList), 1
	}
	qp, err := e.pd.CreateQP(a)
	if err != nil {
		return err
	}
	e.qps = append(e.qps, qp)
	switch {
	case e.RDMACM: // which does so
	case e.Connection == verbs.UD:
		err = qp.Modify(verbs.QPAttr{State: verbs.StateInit, PortNum: uint8(e.IBPort), QKey: qkey},
			verbs.AttrState|verbs.AttrPKeyIndex|verbs.AttrPort|verbs.AttrQKey)
	default:
		err = verbs.ToInit(qp, e.access)
	}
	if err != nil {
		return err
	}
	gid, err := e.dev.QueryGID(e.IBPort, e.GIDIndex)
	if err != nil {
		return err
	}
	at := e.areas[i]
	e.mine = append(e.mine, Keys{OutReads: uint32(e.OutReads), QPN: qp.Num(), PSN: rand.Uint32N(1 << 24),
		RKey: at.mr.RKey(), VAddr: at.mr.Addr() + uint64(at.recv), GID: gid.GID, GIDIndex: uint32(e.GIDIndex)})
	return nil
}

// connectQPs connects all queue pairs to the peer's.
func (e *endpoint) connectQPs() error {
	for i, qp := range e.qps {
		if err := e.connectQP(i, qp); err != nil {
			return err
		}
	}
	return nil
}

func (e *endpoint) connectQP(i int, qp verbs.QP) error {
	mine, theirs := e.mine[i], e.theirs[i]
	if [8]byte(theirs.GID[8:]) == [8]byte{} {
		return protocolErrorf("peer sent no GID, which RoCE needs; start it with -x and the index of a RoCE v2 GID")
	}
	var label uint32
	if n := len(e.FlowLabel); n > 0 {
		label = e.FlowLabel[i%n]
	}
	if e.Connection == verbs.UD {
		if err := verbs.ActivateUD(qp, qkey, mine.PSN); err != nil {
			return err
		}
		ah, err := e.pd.CreateAH(verbs.AHAttr{DGID: theirs.GID, SL: uint8(e.SL), SGIDIndex: e.GIDIndex, PortNum: uint8(e.IBPort),
			TrafficClass: uint8(e.TrafficClass), FlowLabel: label, HopLimit: hops})
		e.ahs = append(e.ahs, ah)
		return err
	}
	return verbs.Connect(qp, verbs.Endpoint{GID: mine.GID, QPN: mine.QPN, PSN: mine.PSN},
		verbs.Endpoint{GID: theirs.GID, QPN: theirs.QPN, PSN: theirs.PSN},
		verbs.ConnectOptions{MTU: e.mtu, AckTimeout: timeoutOption(e.QPTimeout), SL: uint8(e.SL), TrafficClass: uint8(e.TrafficClass),
			HopLimit: hops, FlowLabel: label,
			MaxRdAtomic: countOption(min(int(theirs.OutReads), e.dev.QueryDevice().MaxQPInitRdAtom, 255)), MaxDestRdAtomic: countOption(int(mine.OutReads))})
}

// countOption returns n for ConnectOptions, in which -1 stands for none and 0 for the default.
func countOption(n int) int { return cmp.Or(n, -1) }

// timeoutOption returns the ConnectOptions.AckTimeout of a 5-bit code.
func timeoutOption(code int) time.Duration { return cmp.Or(verbs.AckTimeout(uint8(code)), -1) }

// close frees all objects. Closing twice is safe.
func (e *endpoint) close() error {
	return errors.Join(closing.All(e.qps...), closing.All[io.Closer](e.srq, e.cq), closing.All(e.mrs...),
		closing.All(e.ahs...), closing.All[io.Closer](e.pd))
}
