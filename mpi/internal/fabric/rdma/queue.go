package rdma

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"github.com/softrnic/softrnic/verbs"
)

// A Queue is a separate shared receive queue with connections of its own to some ranks:
// messages are received in memory of the program, in the order of posted receives, from
// any rank (PPoPP '07, section 2). Its methods are called with the engine's lock held.
type Queue struct {
	f         *Fabric
	srq       verbs.SRQ
	qps       map[int]verbs.QP // by rank
	endpoints map[int]verbs.Endpoint
}

// queueDepth is the maximum number of outstanding sends to a rank, and of posted
// receives.
const queueDepth = 4

// NewQueue creates a queue without connections. It lasts until the fabric is closed,
// because other ranks may still retransmit.
func (f *Fabric) NewQueue() (*Queue, error) {
	q := &Queue{f: f, qps: map[int]verbs.QP{}, endpoints: map[int]verbs.Endpoint{}}
	var err error
	if q.srq, err = f.pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: queueDepth, MaxSGE: 1}); err != nil {
		return nil, err
	}
	f.queues = append(f.queues, q)
	return q, f.cq.Resize(f.cqDepth(0))
}

// Endpoint creates the local end of the connection to a rank, and returns its address.
func (q *Queue) Endpoint(rank int) (verbs.Endpoint, error) {
	f := q.f
	qp, err := f.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: f.cq, RecvCQ: f.cq, SRQ: q.srq, Cap: verbs.QPCap{MaxSendWR: queueDepth, MaxSendSGE: 1}})
	if err != nil {
		return verbs.Endpoint{}, err
	}
	q.qps[rank] = qp
	var psn [4]byte
	rand.Read(psn[:])
	q.endpoints[rank], err = verbs.LocalEndpoint(f.dev, qp, binary.LittleEndian.Uint32(psn[:])>>8)
	if err == nil {
		err = f.cq.Resize(f.cqDepth(0))
	}
	return q.endpoints[rank], err
}

// Connect connects the local end with the remote one.
func (q *Queue) Connect(rank int, other verbs.Endpoint) error {
	qp := q.qps[rank]
	if qp == nil {
		return fmt.Errorf("queue: rank %d: no local endpoint", rank)
	}
	return verbs.Connect(qp, q.endpoints[rank], other, q.f.o.Connect)
}

// Post posts a receive of a message of len(b) bytes from any rank. then is called when
// it is complete.
func (q *Queue) Post(b []byte, then func(error)) error {
	return q.postTransfer(b, then, func(wrid uint64, sge []verbs.SGE) error {
		_, err := q.srq.PostRecv([]verbs.RecvWR{{WRID: wrid, SGList: sge}})
		return err
	})
}

// Send sends b to a rank that has posted a receive. then is called when it is complete.
func (q *Queue) Send(rank int, b []byte, then func(error)) error {
	return q.postTransfer(b, then, func(wrid uint64, sge []verbs.SGE) error {
		_, err := q.qps[rank].PostSend([]verbs.SendWR{{WRID: wrid, Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: sge}})
		return err
	})
}

// postTransfer posts a work request for registered memory.
func (q *Queue) postTransfer(b []byte, then func(error), post func(wrid uint64, sge []verbs.SGE) error) error {
	f := q.f
	mr, err := f.cache.acquire(b)
	if err != nil {
		return err
	}
	index := f.transfers.add(transfer{mr: mr, buffer: noBuffer, onDone: then})
	if err := post(wrid(wrTransfer, index, 0), []verbs.SGE{mr.sge(b)}); err != nil {
		f.transfers.remove(index)
		f.cache.release(mr)
		return err
	}
	return nil
}

// destroyQPs destroys the connections.
func (q *Queue) destroyQPs() (err error) {
	for _, qp := range q.qps {
		if e := qp.Close(); err == nil {
			err = e
		}
	}
	return err
}
