package verbsbench

import (
	"github.com/softrnic/softrnic/verbs"
)

// grhLen is what a UD receive holds before the payload.
const grhLen = 40

// giveBackList is how many receives are posted at once.
const giveBackList = 16

// receives keeps the first queue pair of a rig supplied with receives. They
// place what comes in slots of memory in turn; those of a writer's target need
// none.
type receives struct {
	qp     verbs.QP
	mr     verbs.MR
	slots  int
	stride int // of a slot
	head   int // bytes of a slot before the payload
	wrs    []verbs.RecvWR
	free   []verbs.RecvWR // to be posted
}

// newReceives posts depth receives, into so many slots, for payloads of up to
// size bytes.
func newReceives(r *rig, depth, slots, size int) (*receives, error) {
	in := &receives{qp: r.qps[0], slots: slots, wrs: make([]verbs.RecvWR, depth)}
	if !r.kind.writes() {
		if r.kind.transport == verbs.UD {
			in.head = grhLen
		}
		in.stride = (in.head + size + 7) &^ 7
		var err error
		if in.mr, err = r.pd.RegMR(make([]byte, slots*in.stride), verbs.AccessLocalWrite); err != nil {
			return nil, err
		}
	}
	for i := range in.wrs {
		in.wrs[i].WRID = uint64(i)
		if in.mr != nil {
			in.wrs[i].SGList = []verbs.SGE{in.mr.SGE(i%slots*in.stride, in.head+size)}
		}
	}
	_, err := in.qp.PostRecv(in.wrs)
	return in, err
}

// slot is where a completed receive has placed its message.
func (in *receives) slot(wc *verbs.WC) int { return int(wc.WRID) % in.slots }

// payload is what a completed receive holds, until its slot has its turn again.
func (in *receives) payload(wc *verbs.WC) []byte {
	if in.mr == nil {
		return nil
	}
	at := in.slot(wc) * in.stride
	return in.mr.Bytes()[at+in.head : at+int(wc.ByteLen)]
}

// giveBack posts a completed receive again, some at a time.
func (in *receives) giveBack(wc *verbs.WC) error {
	in.free = append(in.free, in.wrs[wc.WRID])
	if len(in.free) < giveBackList {
		return nil
	}
	_, err := in.qp.PostRecv(in.free)
	in.free = in.free[:0]
	return err
}

// close frees the memory. The queue pair must be gone.
func (in *receives) close() error {
	if in.mr == nil {
		return nil
	}
	return in.mr.Dereg()
}

// memory is the part of a slot where payload is placed.
func (in *receives) memory(slot int) []byte {
	return in.mr.Bytes()[slot*in.stride+in.head : (slot+1)*in.stride]
}

// empty clears all slots.
func (in *receives) empty() {
	if in.mr != nil {
		clear(in.mr.Bytes())
	}
}
