package verbsbench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/verbs"
)

// qkey is that of all UD queue pairs here; perftest uses the same.
const qkey = 0x11111111

// dataOffset is where the payload begins in a rig's memory. Before it there is
// the word that the peer's bell rings.
const dataOffset = 64

// rig is what a subject has of the verbs on one end, connected to the same on
// the other: queue pairs for the data, one completion queue for all of them,
// one region of memory, and a bell.
type rig struct {
	*side
	rigOptions
	cq      verbs.CQ
	qps     []verbs.QP
	mr      verbs.MR
	counter *remoteCounter

	remote connInfo
	ah     verbs.AH // UD: leads to the peer
	wcs    [64]verbs.WC
}

type rigOptions struct {
	kind   opKind
	qps    int
	limits verbs.QPCap      // of each queue pair for data
	memory int              // bytes for payload
	ready  func(*rig) error // posts receives, before the peer can send
}

// connInfo is what the ends tell each other of a rig.
type connInfo struct {
	QPs     []verbs.Endpoint
	Counter verbs.Endpoint
	Addr    uint64
	RKey    uint32
}

// openRig makes the rig; both ends do so at once.
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
	sheets, err := proc.Exchange(ctx, e.Worker, mine)
	if err != nil {
		return nil, err
	}
	r.remote = sheets[e.peerRank()]
	if err := r.connectPeer(mine); err != nil {
		return nil, err
	}
	return r, proc.Barrier(ctx, e.Worker)
}

// createQP makes a queue pair to which receives can be posted, and its
// endpoint. Only requests with SendSignaled complete.
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

// ackTimeout, 0.27 s, makes a queue pair wait for some 7 s in all: a peer may have to
// share its processor with much else.
const ackTimeout = 16

func (r *rig) connectPeer(mine connInfo) (err error) {
	if len(r.remote.QPs) != len(r.qps) {
		return fmt.Errorf("verbsbench: the peer has %d queue pairs and we have %d", len(r.remote.QPs), len(r.qps))
	}
	path := verbs.ConnectOptions{MTU: r.path, Timeout: ackTimeout}
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

// newSendWR is a work request of the rig's operation that moves n bytes at
// offset off of the local data to or from offset at of the peer's. Its list of
// elements has room in sge.
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

// payloadBytes is the payload's memory.
func (r *rig) payloadBytes() []byte { return r.mr.Bytes()[dataOffset:] }

// counterValue is the number that the peer's bell rang last.
func (r *rig) counterValue() uint64 { return r.mr.LoadUint64(0) }

func (r *rig) close() error {
	var errs []error
	for _, qp := range r.qps {
		errs = append(errs, qp.Destroy())
	}
	if r.counter != nil {
		errs = append(errs, r.counter.close())
	}
	if r.ah != nil {
		errs = append(errs, r.ah.Destroy())
	}
	if r.mr != nil {
		errs = append(errs, r.mr.Dereg())
	}
	if r.cq != nil {
		errs = append(errs, r.cq.Destroy())
	}
	return errors.Join(errs...)
}

const (
	pollTimeout       = 5 * time.Second // after which nothing will come any more
	pollsPerClockRead = 1 << 14         // empty looks between two at the clock
)

// pollDeadline limits a loop of looks that find nothing.
type pollDeadline struct {
	polls    int
	deadline time.Time
}

// hasExpired counts one more look and reports whether patience has run out.
func (w *pollDeadline) hasExpired() bool {
	if w.polls++; w.polls%pollsPerClockRead != 0 {
		return false
	}
	now := time.Now()
	if w.deadline.IsZero() {
		w.deadline = now.Add(pollTimeout)
	}
	return now.After(w.deadline)
}
