package peer

import (
	"context"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"time"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// Softrnic is a Side with its own adapter in this process.
type Softrnic struct {
	Device *rnic.Device

	options Options
	pd      verbs.PD
	cq      verbs.CQ
	srq     verbs.SRQ
	mr      verbs.MR
	qps     []verbs.QP
	local   []verbs.Endpoint
	ah      []verbs.AH // of UD queue pairs, set by Connect
	remote  []verbs.Endpoint
}

// OpenSoftrnic opens an adapter and creates the resources of a Side. Its queue pairs are in
// StateInit.
func OpenSoftrnic(device rnic.Options, o Options) (*Softrnic, error) {
	o = o.withDefaults()
	dev, err := rnic.Open(device)
	if err != nil {
		return nil, err
	}
	s := &Softrnic{Device: dev, options: o, ah: make([]verbs.AH, o.QPs), remote: make([]verbs.Endpoint, o.QPs)}
	if err := s.createResources(o); err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	return s, nil
}

func (s *Softrnic) createResources(o Options) (err error) {
	if s.pd, err = s.Device.AllocPD(); err != nil {
		return err
	}
	if s.cq, err = s.Device.CreateCQ(cqDepth); err != nil {
		return err
	}
	if s.mr, err = s.pd.RegMR(make([]byte, o.Memory), o.Access); err != nil {
		return err
	}
	if o.SRQ {
		if s.srq, err = s.pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: o.RecvDepth, MaxSGE: 1}); err != nil {
			return err
		}
	}
	for range o.QPs {
		qp, err := s.pd.CreateQP(verbs.QPInitAttr{Type: o.Type, SendCQ: s.cq, RecvCQ: s.cq, SRQ: s.srq, SelectiveSignaling: true,
			Cap: verbs.QPCap{MaxSendWR: o.SendDepth, MaxRecvWR: o.RecvDepth, MaxSendSGE: 1, MaxRecvSGE: 1}})
		if err != nil {
			return err
		}
		if o.Type == verbs.UD {
			err = qp.Modify(verbs.QPAttr{State: verbs.StateInit, PortNum: 1, QKey: qkey},
				verbs.AttrState|verbs.AttrPKeyIndex|verbs.AttrPort|verbs.AttrQKey)
		} else {
			err = verbs.ToInit(qp, o.QPAccess)
		}
		if err != nil {
			return err
		}
		local, err := verbs.LocalEndpoint(s.Device, qp, rand.Uint32N(1<<24))
		if err != nil {
			return err
		}
		s.qps, s.local = append(s.qps, qp), append(s.local, local)
	}
	return nil
}

// Name returns "softrnic".
func (s *Softrnic) Name() string { return "softrnic" }

// Endpoint implements Side.
func (s *Softrnic) Endpoint(qp int) verbs.Endpoint { return s.local[qp] }

// Connect implements Side.
func (s *Softrnic) Connect(qp int, to verbs.Endpoint, o verbs.ConnectOptions) (err error) {
	if s.options.Type != verbs.UD {
		return verbs.Connect(s.qps[qp], s.local[qp], to, o)
	}
	s.remote[qp] = to
	if s.ah[qp], err = s.pd.CreateAH(verbs.AHAttr{DGID: to.GID, UDPPort: to.UDPPort}); err != nil {
		return err
	}
	return verbs.ActivateUD(s.qps[qp], qkey, s.local[qp].PSN)
}

// PostRecv implements Side.
func (s *Softrnic) PostRecv(qp int, id uint64, sges []verbs.SGE) (err error) {
	wrs := []verbs.RecvWR{{WRID: id, SGList: sges}}
	if s.srq != nil {
		_, err = s.srq.PostRecv(wrs)
	} else {
		_, err = s.qps[qp].PostRecv(wrs)
	}
	return err
}

// PostSend implements Side.
func (s *Softrnic) PostSend(qp int, wr verbs.SendWR) error {
	if s.ah[qp] != nil {
		wr.AH, wr.RemoteQPN, wr.RemoteQKey = s.ah[qp], s.remote[qp].QPN, qkey
	}
	_, err := s.qps[qp].PostSend([]verbs.SendWR{wr})
	return err
}

// Poll implements Side.
func (s *Softrnic) Poll(n int, within time.Duration) ([]verbs.WC, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	wcs := make([]verbs.WC, n)
	got := 0
	for got < n {
		k, err := s.cq.PollWait(ctx, wcs[got:])
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		if err != nil {
			return nil, err
		}
		got += k
	}
	return wcs[:got], nil
}

// Arm implements Side.
func (s *Softrnic) Arm(solicited bool) error { return s.cq.ReqNotify(solicited) }

// Event implements Side.
func (s *Softrnic) Event(within time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	err := s.cq.Wait(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return false, nil
	}
	return err == nil, err
}

// Limit implements Side.
func (s *Softrnic) Limit(n int) error { return s.srq.Modify(verbs.SRQAttr{Limit: n}, verbs.SRQLimit) }

// AsyncEvent implements Side.
func (s *Softrnic) AsyncEvent(within time.Duration) (verbs.EventType, bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	e, err := s.Device.AsyncEvent(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return 0, false, nil
	}
	return e.Type, err == nil, err
}

// Fail implements Side.
func (s *Softrnic) Fail(qp int) error {
	return s.qps[qp].Modify(verbs.QPAttr{State: verbs.StateErr}, verbs.AttrState)
}

// State implements Side.
func (s *Softrnic) State(qp int) (verbs.QPState, error) { return s.qps[qp].State(), nil }

// SGE implements Side.
func (s *Softrnic) SGE(off, n int) []verbs.SGE { return []verbs.SGE{s.mr.SGE(off, n)} }

// Addr implements Side.
func (s *Softrnic) Addr(off int) uint64 { return s.mr.Addr() + uint64(off) }

// RKey implements Side.
func (s *Softrnic) RKey() uint32 { return s.mr.RKey() }

// Fill implements Side.
func (s *Softrnic) Fill(off, n int, seed uint32) error {
	fillPattern(s.mr.Bytes()[off:][:n], seed)
	return nil
}

// Sum implements Side.
func (s *Softrnic) Sum(off, n int) (uint32, error) {
	return crc32.ChecksumIEEE(s.mr.Bytes()[off:][:n]), nil
}

// Put implements Side.
func (s *Softrnic) Put(off int, data []byte) error {
	copy(s.mr.Bytes()[off:][:len(data)], data)
	return nil
}

// Get implements Side.
func (s *Softrnic) Get(off, n int) ([]byte, error) {
	return append([]byte(nil), s.mr.Bytes()[off:][:n]...), nil
}

// Close closes the adapter.
func (s *Softrnic) Close() error { return s.Device.Close() }
