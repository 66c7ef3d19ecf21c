package verbsbench

import (
	"github.com/softrnic/softrnic/verbs"
)

// grhLen is what a UD receive holds before the payload.
const grhLen = 40

// repostBatch is how many receives are posted at once.
const repostBatch = 16

// recvPool keeps the first queue pair of a rig supplied with receives. They
// place what comes in slots of memory in turn; those of a writer's target need
// none.
type recvPool struct {
	qp        verbs.QP
	mr        verbs.MR
	slots     int
	stride    int // of a slot
	headerLen int // bytes of a slot before the payload
	wrs       []verbs.RecvWR
	toPost    []verbs.RecvWR // to be posted
}

// newRecvPool posts depth receives, into so many slots, for payloads of up to
// size bytes.
func newRecvPool(r *rig, depth, slots, size int) (*recvPool, error) {
	in := &recvPool{qp: r.qps[0], slots: slots, wrs: make([]verbs.RecvWR, depth)}
	if !r.kind.isWrite() {
		if r.kind.transport == verbs.UD {
			in.headerLen = grhLen
		}
		in.stride = (in.headerLen + size + 7) &^ 7
		var err error
		if in.mr, err = r.pd.RegMR(make([]byte, slots*in.stride), verbs.AccessLocalWrite); err != nil {
			return nil, err
		}
	}
	for i := range in.wrs {
		in.wrs[i].WRID = uint64(i)
		if in.mr != nil {
			in.wrs[i].SGList = []verbs.SGE{in.mr.SGE(i%slots*in.stride, in.headerLen+size)}
		}
	}
	_, err := in.qp.PostRecv(in.wrs)
	return in, err
}

// slotIndex is where a completed receive has placed its message.
func (in *recvPool) slotIndex(wc *verbs.WC) int { return int(wc.WRID) % in.slots }

// payloadOf is what a completed receive holds, until its slot has its turn again.
func (in *recvPool) payloadOf(wc *verbs.WC) []byte {
	if in.mr == nil {
		return nil
	}
	at := in.slotIndex(wc) * in.stride
	return in.mr.Bytes()[at+in.headerLen : at+int(wc.ByteLen)]
}

// repostRecv posts a completed receive again, some at a time.
func (in *recvPool) repostRecv(wc *verbs.WC) error {
	in.toPost = append(in.toPost, in.wrs[wc.WRID])
	if len(in.toPost) < repostBatch {
		return nil
	}
	_, err := in.qp.PostRecv(in.toPost)
	in.toPost = in.toPost[:0]
	return err
}

// close frees the memory. The queue pair must be gone.
func (in *recvPool) close() error {
	if in.mr == nil {
		return nil
	}
	return in.mr.Dereg()
}

// slotBuffer is the part of a slot where payload is placed.
func (in *recvPool) slotBuffer(slot int) []byte {
	return in.mr.Bytes()[slot*in.stride+in.headerLen : (slot+1)*in.stride]
}

// clearSlots clears all slots.
func (in *recvPool) clearSlots() {
	if in.mr != nil {
		clear(in.mr.Bytes())
	}
}
