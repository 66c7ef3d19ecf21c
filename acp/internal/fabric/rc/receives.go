package rc

import (
	"fmt"

	"github.com/softrnic/softrnic/verbs"
)

// maxReceives is how many signals can be expected.
const maxReceives = 1 << 14

// spare is how many receives there are beyond those that are expected, so that they need not be posted
// one by one: refillMin at a time.
const (
	spare     = 32
	refillMin = 16
)

// recvID is the WRID of receives, which no operation has.
const recvID = 1 << 63

// receives are what immediate data uses up. They have no memory. There is one for every signal
// that can come before we look.
type receives struct {
	posted  int // there are
	used    int // of these, to be posted again
	surplus int // of these, not wanted any more
	wrs     [64]verbs.RecvWR
}

// ReserveSignals implements fabric.Net.
func (n *Net) ReserveSignals(more int) error {
	r := &n.recvs
	if again := min(more, r.surplus); again > 0 {
		r.surplus -= again
		more -= again
	}
	if r.posted == 0 && more > 0 {
		more += spare
	}
	if r.posted+more > maxReceives {
		return fmt.Errorf("%w: %d signals at a time", verbs.ErrLimit, maxReceives)
	}
	r.posted += more
	r.used += more
	if err := n.cq.Resize(n.cqDepth()); err != nil {
		r.posted -= more
		r.used -= more
		return err
	}
	r.repostUsed(n)
	return nil
}

// ReleaseSignals implements fabric.Net.
func (n *Net) ReleaseSignals(less int) { n.recvs.surplus += less }

// repostUsed posts what has been used up.
func (r *receives) repostUsed(n *Net) {
	if gone := min(r.surplus, r.used); gone > 0 {
		r.surplus -= gone
		r.used -= gone
		r.posted -= gone
	}
	if r.used < refillMin && r.used < r.posted/2 {
		return // the spare ones are enough until there are more
	}
	for r.used > 0 {
		k := min(r.used, len(r.wrs))
		for i := range r.wrs[:k] {
			r.wrs[i].WRID = recvID
		}
		if _, err := n.srq.PostRecv(r.wrs[:k]); err != nil {
			n.failAll(err)
			return
		}
		r.used -= k
	}
}
