package mpi

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/softrnic/softrnic/mpi/pmi"
)

// whereabouts is which process on which host each rank is, as ranks tell one another by
// the process manager before their first fence: for errors, and looked up for those alone.
type whereabouts struct {
	manager pmi.Manager
	known   sync.Map // by rank
}

func whereaboutsKey(rank int) string { return fmt.Sprintf("process/%d", rank) }

// tellWhereabouts is called before the ranks' first fence. failed is why the rank does not
// start, or nil.
func tellWhereabouts(m pmi.Manager, failed error) error {
	host, _ := os.Hostname()
	text := fmt.Sprintf("%s, pid %d", cmp.Or(host, "unknown host"), os.Getpid())
	if failed != nil {
		text = fmt.Sprintf("%s, not started: %v", text, failed)
	}
	return m.Put(whereaboutsKey(m.Rank()), text)
}

// joinFirstFence takes part in the first fence for a rank that does not start, so that the
// others, which need not end, do not wait there for startTime. They find no address of the
// rank, and what they do with it ends with an ErrLost that says why. It does not wait: the
// program is to have the error at once.
func joinFirstFence(m pmi.Manager, failed error) {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), startTime)
		defer cancel()
		if tellWhereabouts(m, failed) == nil {
			_ = m.Fence(ctx) // nobody is left to have the error
		}
	}()
}

// whereaboutsTime is the time in which the process manager must reply.
const whereaboutsTime = time.Second

// of returns host and process of a rank, "" if the process manager does not tell.
func (x *whereabouts) of(rank int) string {
	if text, ok := x.known.Load(rank); ok {
		return text.(string)
	}
	ctx, cancel := context.WithTimeout(context.Background(), whereaboutsTime)
	defer cancel()
	text, _ := x.manager.Get(ctx, whereaboutsKey(rank))
	x.known.Store(rank, text)
	return text
}
