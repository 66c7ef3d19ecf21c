package rc

import (
	"encoding/binary"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/verbs"
)

// cells is the memory that atomics bring what they have found to. There are few for all
// connections: who finds none waits until one is free.
type cells struct {
	mr   verbs.MR
	free []int32
}

// cellCount is how many atomics are under way at most.
const cellCount = 256

func (c *cells) init(pd verbs.PD) (err error) {
	c.mr, err = pd.RegMR(make([]byte, 8*cellCount), verbs.AccessLocalWrite)
	for i := range int32(cellCount) {
		c.free = append(c.free, i)
	}
	return err
}

func (c *cells) sge(op *fabric.Op) verbs.SGE { return c.mr.SGE(int(op.Cell)*8, 8) }

// take gives an atomic a cell, or has its link wait for one.
func (c *cells) take(n *Net, l *link, op *fabric.Op) bool {
	last := len(c.free) - 1
	if last < 0 {
		if !l.hungry {
			l.hungry = true
			n.starved = append(n.starved, l)
		}
		return false
	}
	op.Cell = c.free[last]
	c.free = c.free[:last]
	return true
}

// put takes it back, with what has been found.
func (c *cells) put(n *Net, op *fabric.Op) {
	if op.Kind != fabric.CompareSwap && op.Kind != fabric.FetchAdd {
		return
	}
	op.Old = binary.NativeEndian.Uint64(c.mr.Bytes()[op.Cell*8:])
	c.free = append(c.free, op.Cell)
	for _, l := range n.starved {
		l.hungry = false
		n.soil(l)
	}
	n.starved = n.starved[:0]
}
