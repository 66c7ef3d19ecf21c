package rc

import (
	"fmt"

	"github.com/softrnic/softrnic/verbs"
)

// maxReceives is the maximum number of signals that can be reserved.
const maxReceives = 1 << 14

// spare is the number of receives beyond those that are reserved, so that receives can be reposted in batches
// of refillMin.
const (
	spare     = 32
	refillMin = 16
)

// recvID is the WRID of receives. No operation has it.
const recvID = 1 << 63

// receives are the posted receives that immediate data consumes. They have no buffers. One is posted for
// every signal that can arrive before the next poll.
type receives struct {
	posted  int // posted, or consumed and to be reposted
	used    int // of these, consumed
	surplus int // of these, no longer reserved
	wrs     [64]verbs.RecvWR
}

// ReserveSignals implements fabric.Net.
func (n *Net) ReserveSignals(more int) error {
	r := &n.recvs
	restored := min(more, r.surplus)
	more -= restored
	if r.posted == 0 && more > 0 {
		more += spare
	}
	if r.posted+more > maxReceives {
		return fmt.Errorf("%w: at most %d signals in flight", verbs.ErrLimit, maxReceives)
	}
	r.posted += more
	r.used += more
	if err := n.cq.Resize(n.cqDepth()); err != nil {
		r.posted -= more
		r.used -= more
		return err
	}
	r.surplus -= restored
	r.repostUsed(n)
	return nil
}

// ReleaseSignals implements fabric.Net.
func (n *Net) ReleaseSignals(less int) { n.recvs.surplus += less }

// repostUsed reposts the consumed receives.
func (r *receives) repostUsed(n *Net) {
	if removed := min(r.surplus, r.used); removed > 0 {
		r.surplus -= removed
		r.used -= removed
		r.posted -= removed
	}
	if r.used < refillMin && r.used < r.posted/2 {
		return // the spare receives suffice until more are consumed
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
