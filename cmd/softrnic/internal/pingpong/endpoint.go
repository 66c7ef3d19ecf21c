package pingpong

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/cmd/internal/closing"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
	"github.com/softrnic/softrnic/verbs"
)

// Constants of the originals.
const (
	qkey       = 0x11111111
	fillByte   = 0x7b                       // every byte of a message; srq's are 0
	ackTimeout = 67108864 * time.Nanosecond // 4.096 us * 2^14
	grhLen     = 40                         // in front of each datagram
)

// An endpoint has the verbs objects of one side.
type endpoint struct {
	*Options
	dev       verbs.Device
	pd        verbs.PD
	mr        verbs.MR
	cq        verbs.CQ
	srq       verbs.SRQ // or nil
	qps       []verbs.QP
	ah        verbs.AH // UD: leads to the peer
	headerLen int      // bytes in front of the message

	local, remote []Record
	receives      []verbs.RecvWR // RxDepth of them, all the same
	polls         int            // of the completion queue
}

// newEndpoint opens an endpoint on dev and posts the receives. The caller must close it.
func newEndpoint(o *Options, dev verbs.Device) (*endpoint, error) {
	e := &endpoint{Options: o, dev: dev}
	if err := e.allocate(); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

func (e *endpoint) allocate() (err error) {
	if err := e.checkCapabilities(); err != nil {
		return err
	}
	if e.Kind == UD {
		e.headerLen = grhLen
	}
	if e.pd, err = e.dev.AllocPD(); err != nil {
		return err
	}
	if e.mr, err = e.pd.RegMR(make([]byte, e.headerLen+e.Size), verbs.AccessLocalWrite); err != nil {
		return err
	}
	e.fillMessage()
	if e.cq, err = e.dev.CreateCQ(e.RxDepth + e.NumQP); err != nil {
		return err
	}
	e.cq.RecordTimes(e.Times)
	if e.Kind == SRQ {
		if e.srq, err = e.pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: e.RxDepth, MaxSGE: 1}); err != nil {
			return err
		}
	}
	for range e.NumQP {
		if err := e.addQP(); err != nil {
			return err
		}
	}
	e.receives = make([]verbs.RecvWR, e.RxDepth)
	all := []verbs.SGE{e.mr.SGE(0, e.headerLen+e.Size)}
	for i := range e.receives {
		e.receives[i].SGList = all
	}
	return e.postReceives(e.RxDepth)
}

// checkCapabilities rejects options beyond the device's limits.
func (e *endpoint) checkCapabilities() error {
	port, err := e.dev.QueryPort(e.IBPort)
	if err != nil {
		return err
	}
	limits := e.dev.QueryDevice()
	switch active := port.ActiveMTU; {
	case port.UDPPort != 0 && port.UDPPort != roceUDPPort:
		return fmt.Errorf("device listens on UDP port %d, want %d: the handshake cannot carry a UDP port", port.UDPPort, roceUDPPort)
	case e.Kind == UD && e.Size > active.Bytes():
		return option.Errorf("-s", "%d bytes are more than the port's MTU (%d), and a datagram is one packet", e.Size, active.Bytes())
	case e.Kind != UD && e.MTU > active:
		return option.Errorf("-m", "%d bytes are more than the port's MTU (%d)", e.MTU.Bytes(), active.Bytes())
	case e.RxDepth > limits.MaxQPWR:
		return option.Errorf("-r", "the device takes at most %d receives", limits.MaxQPWR)
	}
	return nil
}

// roceUDPPort is the UDP port of RoCE v2.
const roceUDPPort = 4791

// addQP creates a queue pair in a state that accepts receives.
func (e *endpoint) addQP() error {
	a := verbs.QPInitAttr{Type: e.Kind.qpType(), SendCQ: e.cq, RecvCQ: e.cq, SRQ: e.srq,
		Cap: verbs.QPCap{MaxSendWR: 1, MaxSendSGE: 1}}
	if e.srq == nil {
		a.Cap.MaxRecvWR, a.Cap.MaxRecvSGE = e.RxDepth, 1
	}
	qp, err := e.pd.CreateQP(a)
	if err != nil {
		return err
	}
	e.qps = append(e.qps, qp)
	if e.Kind == UD {
		err = qp.Modify(verbs.QPAttr{State: verbs.StateInit, PortNum: uint8(e.IBPort), QKey: qkey},
			verbs.AttrState|verbs.AttrPKeyIndex|verbs.AttrPort|verbs.AttrQKey)
	} else {
		err = verbs.ToInit(qp, 0)
	}
	if err != nil {
		return err
	}
	gid, err := e.dev.QueryGID(e.IBPort, e.GIDIndex)
	e.local = append(e.local, Record{QPN: qp.Num(), PSN: rand.Uint32N(1 << 24), GID: gid.GID})
	return err
}

// connectQPs connects the queue pairs to the peer's.
func (e *endpoint) connectQPs(remote []Record) (err error) {
	e.remote = remote
	if e.Kind == UD {
		return e.activateUD(remote[0])
	}
	for i, qp := range e.qps {
		local := verbs.Endpoint{GID: e.local[i].GID, QPN: e.local[i].QPN, PSN: e.local[i].PSN}
		peer := verbs.Endpoint{GID: remote[i].GID, QPN: remote[i].QPN, PSN: remote[i].PSN}
		err := verbs.Connect(qp, local, peer, verbs.ConnectOptions{MTU: e.MTU, AckTimeout: ackTimeout, SL: uint8(e.SL),
			MaxRdAtomic: 1, MaxDestRdAtomic: 1})
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *endpoint) activateUD(remote Record) (err error) {
	if err := verbs.ActivateUD(e.qps[0], qkey, e.local[0].PSN); err != nil {
		return err
	}
	e.ah, err = e.pd.CreateAH(verbs.AHAttr{DGID: remote.GID, SL: uint8(e.SL), SGIDIndex: e.GIDIndex, PortNum: uint8(e.IBPort)})
	return err
}

// postReceives posts n receives.
func (e *endpoint) postReceives(n int) (err error) {
	if e.srq != nil {
		_, err = e.srq.PostRecv(e.receives[:n])
	} else {
		_, err = e.qps[0].PostRecv(e.receives[:n])
	}
	return err
}

// gidText formats a GID as inet_ntop does.
func gidText(g verbs.GID) string { return netip.AddrFrom16(g).String() }

// close frees all objects. Closing twice is safe.
func (e *endpoint) close() error {
	return errors.Join(closing.All(e.qps...), closing.All[io.Closer](e.srq, e.cq, e.mr, e.ah, e.pd))
}
