package acp

import (
	"fmt"

	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// Copy copies n bytes between any two global addresses (acp_copy). It starts when the operations up to after
// are complete. The adapters access the memory until the operation is complete; the programs of other ranks
// take no part in it.
//
// A copy between two other ranks, or within one, is relayed by this rank block by block.
//
// Errors of the addresses are returned by Complete.
func (p *Process) Copy(to, from GA, n int, after Handle) Handle {
	if p.isNull() {
		return None
	}
	p.mu.Lock()
	defer p.unlockAndNotify()
	putTo := -1
	if from.Rank() == p.rank && to.Rank() != p.rank {
		putTo = to.Rank()
	}
	return p.issueOp(&copyOp{to: protocol.GA(to), from: protocol.GA(from), n: n}, after, putTo)
}

// copyOp is the task of Copy.
type copyOp struct {
	to, from protocol.GA
	n        int
	o        *operation
}

func (*copyOp) opName() string { return "copy" }

func (c *copyOp) opTarget() string {
	return fmt.Sprintf("of %d bytes to %v, from %v", c.n, c.to, c.from)
}

// maxAccess is the maximum length in bytes of one access.
const maxAccess = 1 << 30

// startTask implements task. The caller holds Process.mu.
func (c *copyOp) startTask(o *operation) {
	c.o = o
	p := o.p
	err := p.checkRange(c.to, c.n)
	if err == nil {
		err = p.checkRange(c.from, c.n)
	}
	if err != nil || c.n == 0 {
		o.finishOp(err)
		return
	}
	var to, from *Region
	if c.to.Rank() == p.rank {
		to, err = p.memory.findRegion(p, c.to, c.n)
	}
	if c.from.Rank() == p.rank && err == nil {
		from, err = p.memory.findRegion(p, c.from, c.n)
	}
	switch {
	case err != nil:
		o.finishOp(err)
	case to != nil && from != nil:
		copy(to.mr.Bytes()[c.to.Offset():][:c.n], from.mr.Bytes()[c.from.Offset():])
		o.finishOp(nil)
	case to == nil && from == nil:
		p.startRelay(c)
	default:
		o.outstanding = (c.n + maxAccess - 1) / maxAccess
		for off := 0; off < c.n; off += maxAccess {
			n := min(maxAccess, c.n-off)
			if from != nil {
				p.startAccess(p.newPut(c.to.Add(off), from, int(c.from.Offset())+off, n, c))
			} else {
				p.startAccess(p.newGet(to, int(c.to.Offset())+off, c.from.Add(off), n, c))
			}
		}
	}
}

// onAccessDone implements accessOwner.
func (c *copyOp) onAccessDone(_ *access, err error) { c.o.completePart(err) }

// checkRange returns an error unless n bytes at ga can be an address of the program.
func (p *Process) checkRange(ga protocol.GA, n int) error {
	switch {
	case n < 0:
		return fmt.Errorf("%w: %d bytes", ErrLength, n)
	case ga == protocol.Null || ga.Region() == 0:
		return fmt.Errorf("%w: %v", ErrRegion, ga)
	case ga.Rank() >= p.size:
		return fmt.Errorf("%w: %v, want ranks below %d", ErrRank, ga, p.size)
	case uint64(n) > protocol.MaxLength-ga.Offset(), ga.Region() == starterRegion && ga.Offset() < starterOffset:
		return fmt.Errorf("%w: %v", ErrRange, ga)
	}
	return nil
}
