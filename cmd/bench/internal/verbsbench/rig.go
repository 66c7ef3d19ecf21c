package verbsbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/cmd/internal/closing"
	"github.com/softrnic/softrnic/verbs"
)

// qkey is the Q_Key of all UD queue pairs; perftest uses the same.
const qkey = 0x11111111

// dataOffset is the offset of the payload in a rig's memory. The word at offset 0 is the
// counter that the peer writes.
const dataOffset = 64

// A rig has the verbs resources of a target on one side, connected to those of the other side:
// queue pairs for data, one completion queue for all of them, one memory region, and a counter
// in the peer's memory.
type rig struct {
	*side
	rigOptions
	cq      verbs.CQ
	qps     []verbs.QP
	mr      verbs.MR
	counter *remoteCounter

	remote connInfo
	ah     verbs.AH // UD: address of the peer
	wcs    [64]verbs.WC
}

type rigOptions struct {
	kind   opKind
	qps    int
	limits verbs.QPCap      // of each data queue pair
	memory int              // bytes of payload memory
	ready  func(*rig) error // posts receives before the peer can send
}

// A connInfo is the connection information that the sides exchange for a rig.
type connInfo struct {
	QPs     []verbs.Endpoint
	Counter verbs.Endpoint
	Addr    uint64
	RKey    uint32
}

// openRig creates the rig. Both sides must call it at the same time.
func openRig(ctx context.Context, e *side, o rigOptions) (_ *rig, err error) {
	r := &rig{side: e, rigOptions: o}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	if r.cq, err = e.dev.CreateCQ(max(4096, 2*(o.limits.MaxSendWR+o.limits.MaxRecvWR))); err != nil {
		return nil, err
	}
	if r.mr, err = e.pd.RegMR(make([]byte, dataOffset+o.memory), verbs.AccessLocalWrite|verbs.AccessRemote); err != nil {
		return nil, err
	}
	mine := connInfo{Addr: r.mr.Addr(), RKey: r.mr.RKey()}
	for range o.qps {
		qp, local, err := e.createQP(verbs.QPInitAttr{Type: r.kind.transport, SendCQ: r.cq, RecvCQ: r.cq, Cap: o.limits})
		if err != nil {
			return nil, err
		}
		r.qps = append(r.qps, qp)
		mine.QPs = append(mine.QPs, local)
	}
	if r.counter, mine.Counter, err = newRemoteCounter(e); err != nil {
		return nil, err
	}
	if o.ready != nil {
		if err := o.ready(r); err != nil {
			return nil, err
		}
	}
	infos, err := proc.Exchange(ctx, e.Worker, mine)
	if err != nil {
		return nil, err
	}
	r.remote = infos[e.peerRank()]
	if err := r.connectPeer(mine); err != nil {
		return nil, err
	}
	return r, proc.Barrier(ctx, e.Worker)
}

// createQP creates a queue pair in state INIT, and its endpoint. Only requests with
// SendSignaled generate completions.
func (e *side) createQP(a verbs.QPInitAttr) (verbs.QP, verbs.Endpoint, error) {
	a.SelectiveSignaling = true
	qp, err := e.pd.CreateQP(a)
	if err != nil {
		return nil, verbs.Endpoint{}, err
	}
	if a.Type == verbs.UD {
		err = verbs.ActivateUD(qp, qkey, 0)
	} else {
		err = verbs.ToInit(qp, verbs.AccessRemote)
	}
	if err != nil {
		return nil, verbs.Endpoint{}, err
	}
	local, err := verbs.LocalEndpoint(e.dev, qp, rand.Uint32N(1<<24))
	return qp, local, err
}

// ackTimeout is the local ACK timeout of 4.096 us * 2^16 = 0.27 s. With default retries a queue
// pair waits about 7 s in total, because a peer may share its processor with other load.
const ackTimeout = 4096 << 16 * time.Nanosecond

func (r *rig) connectPeer(mine connInfo) (err error) {
	if len(r.remote.QPs) != len(r.qps) {
		return fmt.Errorf("verbsbench: peer has %d queue pairs, want %d", len(r.remote.QPs), len(r.qps))
	}
	path := verbs.ConnectOptions{MTU: r.path, AckTimeout: ackTimeout}
	for i, qp := range r.qps {
		if r.kind.transport == verbs.UD {
			break
		}
		if err := verbs.Connect(qp, mine.QPs[i], r.remote.QPs[i], path); err != nil {
			return err
		}
	}
	if r.kind.transport == verbs.UD {
		to := r.remote.QPs[0]
		if r.ah, err = r.pd.CreateAH(verbs.AHAttr{DGID: to.GID, UDPPort: to.UDPPort}); err != nil {
			return err
		}
	}
	return r.counter.connectPeer(mine.Counter, r.remote)
}

// newSendWR returns a work request of the rig's operation that moves n bytes between offset off
// of the local payload and offset at of the peer's. It stores its scatter/gather element in
// sge[0].
func (r *rig) newSendWR(sge []verbs.SGE, off, at, n int) verbs.SendWR {
	wr := verbs.SendWR{Opcode: r.kind.opcode, SGList: sge[:1]}
	sge[0] = r.mr.SGE(dataOffset+off, n)
	switch {
	case r.kind.transport == verbs.UD:
		wr.AH, wr.RemoteQPN, wr.RemoteQKey = r.ah, r.remote.QPs[0].QPN, qkey
	case r.kind.opcode != verbs.WRSend:
		wr.RemoteAddr, wr.RKey = r.remote.Addr+dataOffset+uint64(at), r.remote.RKey
	}
	return wr
}

// payloadBytes returns the payload memory.
func (r *rig) payloadBytes() []byte { return r.mr.Bytes()[dataOffset:] }

// counterValue returns the last value that the peer's counter wrote.
func (r *rig) counterValue() uint64 { return r.mr.LoadUint64(0) }

func (r *rig) close() error {
	err := closing.All(r.qps...)
	if r.counter != nil {
		err = errors.Join(err, r.counter.close())
	}
	return errors.Join(err, closing.All[io.Closer](r.ah, r.mr, r.cq))
}

const (
	pollTimeout       = 5 * time.Second // limit of a wait
	pollsPerClockRead = 1 << 14         // unsuccessful polls between two readings of the clock
)

// A pollDeadline limits a loop of unsuccessful polls without reading the clock each time.
type pollDeadline struct {
	polls    int
	deadline time.Time
	timeout  time.Duration // 0: pollTimeout
}

// stallTimeout is longer than the 7 s after which a queue pair of the peer gives up (see ackTimeout).
const stallTimeout = 30 * time.Second

// hasExpired counts one unsuccessful poll and reports whether the timeout has elapsed.
func (w *pollDeadline) hasExpired() bool {
	if w.polls++; w.polls%pollsPerClockRead != 0 {
		return false
	}
	now := time.Now()
	if w.deadline.IsZero() {
		w.deadline = now.Add(cmp.Or(w.timeout, pollTimeout))
	}
	return now.After(w.deadline)
}

const (
	controlDepth          = 32
	controlSignalInterval = controlDepth / 2 // every n-th message is signaled
)

// A controlQP carries empty control messages between a root and one sender over an RC queue
// pair of its own: start, RTS and RTR. The protocol state tells them apart.
type controlQP struct {
	qp   verbs.QP
	sent int
	wr   [1]verbs.SendWR
}

// newControlQP creates a control queue pair with posted receives.
func (e *side) newControlQP(cq verbs.CQ) (*controlQP, verbs.Endpoint, error) {
	qp, local, err := e.createQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: cq, RecvCQ: cq,
		Cap: verbs.QPCap{MaxSendWR: controlDepth, MaxRecvWR: controlDepth}})
	if err != nil {
		return nil, local, err
	}
	l := &controlQP{qp: qp}
	l.wr[0].Opcode = verbs.WRSend
	_, err = qp.PostRecv(make([]verbs.RecvWR, controlDepth))
	return l, local, err
}

// sendEmpty sends an empty message.
func (l *controlQP) sendEmpty() error {
	l.wr[0].Flags = 0
	if l.sent++; l.sent%controlSignalInterval == 0 {
		l.wr[0].Flags = verbs.SendSignaled
	}
	_, err := l.qp.PostSend(l.wr[:])
	return err
}

// repostRecv posts a receive in place of a completed one.
func (l *controlQP) repostRecv() error {
	_, err := l.qp.PostRecv(make([]verbs.RecvWR, 1))
	return err
}
