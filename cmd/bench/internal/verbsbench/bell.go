package verbsbench

import (
	"encoding/binary"
	"errors"

	"github.com/softrnic/softrnic/verbs"
)

// bell is a number in the peer's memory that goes up: credits one way, the end
// of a round the other. It is written over an RC queue pair of its own, so it
// neither gets lost nor stands in the way of the data.
type bell struct {
	cq    verbs.CQ
	qp    verbs.QP
	wr    [1]verbs.SendWR
	word  [8]byte
	since int // rings since the last signaled one
}

const (
	bellDepth  = 64
	bellSignal = bellDepth / 2 // every so many rings one is signaled
)

func newBell(e *end) (b *bell, local verbs.Endpoint, err error) {
	b = &bell{}
	if b.cq, err = e.dev.CreateCQ(bellDepth); err != nil {
		return nil, local, err
	}
	b.qp, local, err = e.createQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: b.cq, RecvCQ: b.cq,
		Cap: verbs.QPCap{MaxSendWR: bellDepth, MaxInlineData: len(b.word)}})
	if err != nil {
		return nil, local, errors.Join(err, b.cq.Destroy())
	}
	return b, local, nil
}

func (b *bell) connect(mine verbs.Endpoint, peer sheet) error {
	b.wr[0] = verbs.SendWR{Opcode: verbs.WRRDMAWrite, InlineData: b.word[:], RemoteAddr: peer.Addr, RKey: peer.RKey}
	return verbs.Connect(b.qp, mine, peer.Bell, verbs.ConnectOptions{Timeout: ackTimeout})
}

// ring writes n. It may look at the socket while its queue is full.
func (b *bell) ring(n uint64) error {
	binary.NativeEndian.PutUint64(b.word[:], n)
	b.wr[0].Flags = verbs.SendInline
	if b.since++; b.since%bellSignal == 0 {
		b.wr[0].Flags |= verbs.SendSignaled
	}
	for {
		_, err := b.qp.PostSend(b.wr[:])
		if !errors.Is(err, verbs.ErrQueueFull) {
			return errors.Join(err, b.drain(b.since%bellSignal == 0))
		}
		if err := b.drain(true); err != nil {
			return err
		}
	}
}

// drain takes completions, if there should be some.
func (b *bell) drain(due bool) error {
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

func (b *bell) close() error { return errors.Join(b.qp.Destroy(), b.cq.Destroy()) }
