package verbsbench

import (
	"encoding/binary"
	"errors"

	"github.com/softrnic/softrnic/verbs"
)

// A remoteCounter is a counter in the peer's memory, written by RDMA writes. It carries credits
// in one direction and the end of a round in the other. It has an RC queue pair of its own, so
// that updates are neither lost nor delayed behind data.
type remoteCounter struct {
	cq     verbs.CQ
	qp     verbs.QP
	wr     [1]verbs.SendWR
	value  [8]byte
	posted int // number of writes posted
}

const (
	counterDepth          = 64
	counterSignalInterval = counterDepth / 2 // every n-th write is signaled
)

func newRemoteCounter(e *side) (b *remoteCounter, local verbs.Endpoint, err error) {
	b = &remoteCounter{}
	if b.cq, err = e.dev.CreateCQ(counterDepth); err != nil {
		return nil, local, err
	}
	b.qp, local, err = e.createQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: b.cq, RecvCQ: b.cq,
		Cap: verbs.QPCap{MaxSendWR: counterDepth, MaxInlineData: len(b.value)}})
	if err != nil {
		return nil, local, errors.Join(err, b.cq.Close())
	}
	return b, local, nil
}

func (b *remoteCounter) connectPeer(mine verbs.Endpoint, peer connInfo) error {
	b.wr[0] = verbs.SendWR{Opcode: verbs.WRRDMAWrite, InlineData: b.value[:], RemoteAddr: peer.Addr, RKey: peer.RKey}
	return verbs.Connect(b.qp, mine, peer.Counter, verbs.ConnectOptions{AckTimeout: ackTimeout})
}

// writeValue writes n to the peer's memory. It polls for completions while the send queue is
// full.
func (b *remoteCounter) writeValue(n uint64) error {
	binary.NativeEndian.PutUint64(b.value[:], n)
	b.wr[0].Flags = verbs.SendInline
	if b.posted++; b.posted%counterSignalInterval == 0 {
		b.wr[0].Flags |= verbs.SendSignaled
	}
	for {
		_, err := b.qp.PostSend(b.wr[:])
		if !errors.Is(err, verbs.ErrQueueFull) {
			return errors.Join(err, b.pollCompletions(b.posted%counterSignalInterval == 0))
		}
		if err := b.pollCompletions(true); err != nil {
			return err
		}
	}
}

// pollCompletions polls for completions if due is true.
func (b *remoteCounter) pollCompletions(due bool) error {
	if !due {
		return nil
	}
	var wc [2]verbs.WC
	n, err := b.cq.Poll(wc[:])
	for i := range wc[:n] {
		err = errors.Join(err, wc[i].Err())
	}
	return err
}

func (b *remoteCounter) close() error { return errors.Join(b.qp.Close(), b.cq.Close()) }
