package rc

import (
	"encoding/binary"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/verbs"
)

// atomicResults is registered memory that receives the results of atomics. Its slots are shared by all
// connections: a link that finds none free waits for one.
type atomicResults struct {
	mr   verbs.MR
	free []int32
}

// maxAtomics is the maximum number of atomics in flight.
const maxAtomics = 256

func (c *atomicResults) init(pd verbs.PD) (err error) {
	c.mr, err = pd.RegMR(make([]byte, 8*maxAtomics), verbs.AccessLocalWrite)
	for i := range int32(maxAtomics) {
		c.free = append(c.free, i)
	}
	return err
}

func (c *atomicResults) slotSGE(op *fabric.Op) verbs.SGE { return c.mr.SGE(int(op.ResultSlot)*8, 8) }

// allocSlot assigns a result slot to an atomic. If none is free it queues the link for one and returns false.
func (c *atomicResults) allocSlot(n *Net, l *link, op *fabric.Op) bool {
	last := len(c.free) - 1
	if last < 0 {
		if !l.waiting {
			l.waiting = true
			n.waiting = append(n.waiting, l)
		}
		return false
	}
	op.ResultSlot = c.free[last]
	c.free = c.free[:last]
	return true
}

// freeSlot stores an atomic's result in op.Old, and frees its slot.
func (c *atomicResults) freeSlot(n *Net, op *fabric.Op) {
	if op.Kind != fabric.CompareSwap && op.Kind != fabric.FetchAdd {
		return
	}
	op.Old = binary.NativeEndian.Uint64(c.mr.Bytes()[op.ResultSlot*8:])
	c.free = append(c.free, op.ResultSlot)
	for _, l := range n.waiting {
		l.waiting = false
		n.markDirty(l)
	}
	n.waiting = n.waiting[:0]
}
