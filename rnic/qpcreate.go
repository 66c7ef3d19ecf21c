package rnic

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/congestion"
	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// CreateQP implements verbs.PD.
func (pd *protectionDomain) CreateQP(a verbs.QPInitAttr) (verbs.QP, error) {
	d, ok := pd.host.(*Device)
	if !ok {
		return nil, &verbs.OpError{Op: "create QP", Err: verbs.ErrUnsupported}
	}
	q, err := d.createQP(pd, a)
	if err != nil {
		return nil, err
	}
	return q, nil
}

func (d *Device) createQP(pd *protectionDomain, a verbs.QPInitAttr) (_ *queuePair, err error) {
	const op = "create QP"
	q := &queuePair{dev: d, pd: pd, selective: a.SelectiveSignaling, signalAll: a.SignalAll, noCredits: a.NoCredits, congestion: a.Congestion, datagram: a.Type == verbs.UD || a.Type == verbs.GSI}
	if err := q.validateInit(op, &a); err != nil {
		return nil, err
	}
	if err := pd.addRef(kindQP, op); err != nil {
		return nil, err
	}
	undo := []func(){func() { pd.release(kindQP) }}
	defer func() {
		if err != nil {
			for i := range undo {
				undo[len(undo)-1-i]()
			}
		}
	}()
	index := int(d.nextShard.Add(1)-1) % len(d.shards)
	if a.Type == verbs.GSI {
		index = wire.QPNGSI % len(d.shards)
	}
	q.shard = d.shards[index]
	for _, c := range []*completionQueue{q.sendCQ, q.recvCQ} {
		if err := c.addUser(q.shard, a.Type == verbs.GSI); err != nil {
			return nil, &verbs.OpError{Op: op, Err: err, Detail: "completion queue of the queue pair"}
		}
		undo = append(undo, c.removeUser)
	}
	if q.srq != nil {
		if err := q.srq.addQP(pd, op); err != nil {
			return nil, err
		}
		undo = append(undo, q.srq.removeQP)
	}
	cfg := qp.Config{
		Type: a.Type, Host: (*qpHost)(q), Memory: (*pdMemory)(pd), Cap: a.Cap, SignalAll: !a.SelectiveSignaling, NoCredits: a.NoCredits,
		LocalBuffer: d.caps.RecvBuffer, PortMTU: d.activeMTU().Bytes(), MaxRDMA: a.MaxDatagramRDMA,
		ConfirmSends: true, Congestion: q.rateMode, Pool: &q.shard.selective, Stream: d.isStream(),
	}
	if q.srq != nil {
		cfg.Shared = (*sharedQueue)(q.srq)
	}
	q.shard.mu.Lock() // q must not be found before it has its core
	defer q.shard.mu.Unlock()
	if a.Type == verbs.GSI {
		q.num = wire.QPNGSI
		if !d.qps.insert(q) {
			return nil, &verbs.OpError{Op: op, Err: verbs.ErrBusy, Detail: "the device's GSI queue pair exists already"}
		}
	} else {
		d.qps.allocateNumber(q, index, len(d.shards), d.random)
	}
	cfg.Num = q.num
	q.core = qp.New(cfg)
	return q, nil
}

// validateInit validates the attributes and stores the objects they name in q.
func (q *queuePair) validateInit(op string, a *verbs.QPInitAttr) error {
	bad := func(err error, format string, args ...any) error {
		return &verbs.OpError{Op: op, Err: err, Detail: fmt.Sprintf(format, args...)}
	}
	var ok bool
	if err := q.dev.checkStreamType(op, a.Type); err != nil {
		return err
	}
	switch a.Type {
	case verbs.RC, verbs.UC, verbs.UD, verbs.GSI:
	default:
		return bad(verbs.ErrUnsupported, "queue pair type %v", a.Type)
	}
	if a.SelectiveSignaling && a.SignalAll {
		return bad(verbs.ErrInvalid, "SelectiveSignaling and SignalAll exclude each other")
	}
	if q.sendCQ, ok = a.SendCQ.(*completionQueue); !ok || q.sendCQ == nil || q.sendCQ.dev != q.dev {
		return bad(verbs.ErrInvalid, "SendCQ must be a completion queue of this device")
	}
	if q.recvCQ, ok = a.RecvCQ.(*completionQueue); !ok || q.recvCQ == nil || q.recvCQ.dev != q.dev {
		return bad(verbs.ErrInvalid, "RecvCQ must be a completion queue of this device")
	}
	if a.SRQ != nil {
		if q.srq, ok = a.SRQ.(*sharedReceiveQueue); !ok || q.srq == nil {
			return bad(verbs.ErrInvalid, "SRQ must be a shared receive queue of this device")
		}
	}
	if a.MaxDatagramRDMA != 0 && a.Type != verbs.UD {
		return bad(verbs.ErrUnsupported, "MaxDatagramRDMA is for UD only, not for %v", a.Type)
	}
	q.maxRDMA = a.MaxDatagramRDMA
	if q.rateMode = q.dev.options.rateMode(q.dev.addr.Addr()); a.Congestion != "" {
		mode, err := congestion.ParseMode(a.Congestion)
		if err != nil {
			return bad(verbs.ErrInvalid, "%v", err)
		}
		q.rateMode = mode
	}
	size := a.Cap
	if q.srq != nil { // receives are posted there
		size.MaxRecvWR, size.MaxRecvSGE = 0, 0
	}
	for _, l := range []struct {
		name      string
		have, max int
	}{
		{"MaxSendWR", size.MaxSendWR, maxQPWR}, {"MaxRecvWR", size.MaxRecvWR, maxQPWR},
		{"MaxSendSGE", size.MaxSendSGE, maxSGE}, {"MaxRecvSGE", size.MaxRecvSGE, maxSGE},
		{"MaxInlineData", size.MaxInlineData, maxInline}, {"MaxDatagramRDMA", a.MaxDatagramRDMA, qp.MaxRDMA},
	} {
		if l.have < 0 || l.have > l.max {
			return bad(verbs.ErrLimit, "%s is %d: want 0 to %d", l.name, l.have, l.max)
		}
	}
	return nil
}
