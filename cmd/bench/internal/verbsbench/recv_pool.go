package verbsbench

import (
	"github.com/softrnic/softrnic/verbs"
)

// grhLen is the length of the GRH that precedes the payload of a UD receive.
const grhLen = 40

// repostBatch is the number of receives that are reposted in one list.
const repostBatch = 16

// A recvPool keeps the first queue pair of a rig supplied with receives. Received messages go
// to memory slots in turn; receives for RDMA writes with immediate need no memory.
type recvPool struct {
	qp        verbs.QP
	mr        verbs.MR
	slots     int
	stride    int // bytes of a slot
	headerLen int // bytes before the payload (GRH)
	wrs       []verbs.RecvWR
	toPost    []verbs.RecvWR // completed receives to repost
}

// newRecvPool posts depth receives for payloads of up to size bytes, in the given number of
// slots.
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

// slotIndex returns the slot of a completed receive.
func (in *recvPool) slotIndex(wc *verbs.WC) int { return int(wc.WRID) % in.slots }

// payloadOf returns the payload of a completed receive. It is valid until the slot is reused.
func (in *recvPool) payloadOf(wc *verbs.WC) []byte {
	if in.mr == nil {
		return nil
	}
	at := in.slotIndex(wc) * in.stride
	return in.mr.Bytes()[at+in.headerLen : at+int(wc.ByteLen)]
}

// repostRecv reposts a completed receive. Receives are posted in batches.
func (in *recvPool) repostRecv(wc *verbs.WC) error {
	in.toPost = append(in.toPost, in.wrs[wc.WRID])
	if len(in.toPost) < repostBatch {
		return nil
	}
	_, err := in.qp.PostRecv(in.toPost)
	in.toPost = in.toPost[:0]
	return err
}

// close deregisters the memory. The queue pair must have been destroyed.
func (in *recvPool) close() error {
	if in.mr == nil {
		return nil
	}
	return in.mr.Close()
}

// slotBuffer returns the payload part of a slot.
func (in *recvPool) slotBuffer(slot int) []byte {
	return in.mr.Bytes()[slot*in.stride+in.headerLen : (slot+1)*in.stride]
}

// clearSlots zeroes all slots.
func (in *recvPool) clearSlots() {
	if in.mr != nil {
		clear(in.mr.Bytes())
	}
}
