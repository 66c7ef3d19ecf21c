package rdma

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"github.com/softrnic/softrnic/verbs"
)

// Queue is a shared receive queue of its own, with connections of its own to some
// ranks: messages land in memory of the program, where the first receive is that was
// posted, whoever sends them (PPoPP '07, section 2). Its methods are called with the
// engine's lock held.
type Queue struct {
	f         *Fabric
	srq       verbs.SRQ
	qps       map[int]verbs.QP // by rank
	endpoints map[int]verbs.Endpoint
}

// queueDepth is how many sends to a rank, and receives, there may be at a time.
const queueDepth = 4

// NewQueue makes a queue without connections. It lasts until the fabric is closed:
// ranks that are through with it may still repeat what they have sent.
func (f *Fabric) NewQueue() (*Queue, error) {
	q := &Queue{f: f, qps: map[int]verbs.QP{}, endpoints: map[int]verbs.Endpoint{}}
	var err error
	if q.srq, err = f.pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: queueDepth, MaxSGE: 1}); err != nil {
		return nil, err
	}
	f.queues = append(f.queues, q)
	return q, f.cq.Resize(f.cqDepth(0))
}

// Endpoint makes one end of the connection to a rank, and says where it is.
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

// Connect connects it with the other end.
func (q *Queue) Connect(rank int, other verbs.Endpoint) error {
	qp := q.qps[rank]
	if qp == nil {
		return fmt.Errorf("rank %d has no end here", rank)
	}
	return verbs.Connect(qp, q.endpoints[rank], other, q.f.o.Connect)
}

// Post posts a receive of a message of len(b) bytes, from whomever. It is over when
// then is called.
func (q *Queue) Post(b []byte, then func(error)) error {
	return q.postTransfer(b, then, func(wrid uint64, sge []verbs.SGE) error {
		_, err := q.srq.PostRecv([]verbs.RecvWR{{WRID: wrid, SGList: sge}})
		return err
	})
}

// Send sends b to a rank that has posted a receive. It is over when then is called.
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

// destroyQPs ends the connections.
func (q *Queue) destroyQPs() (err error) {
	for _, qp := range q.qps {
		if e := qp.Destroy(); err == nil {
			err = e
		}
	}
	return err
}
