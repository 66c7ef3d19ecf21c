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

// tellWhereabouts publishes host and process of this rank before the first fence, and the
// reason if the rank does not start.
func tellWhereabouts(m pmi.Manager, failed error) error {
	host, _ := os.Hostname()
	text := fmt.Sprintf("%s, pid %d", cmp.Or(host, "unknown host"), os.Getpid())
	if failed != nil {
		text = fmt.Sprintf("%s, not started: %v", text, failed)
	}
	return m.Put(whereaboutsKey(m.Rank()), text)
}

// joinFirstFence joins the first fence in the background for a rank whose Init has failed, so
// that the others do not wait there for startTime. They find no address of the rank, and their
// calls with it end with an ErrLost that has the reason.
func joinFirstFence(m pmi.Manager, failed error) {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), startTime)
		defer cancel()
		if tellWhereabouts(m, failed) == nil {
			_ = m.Fence(ctx) // Init has returned its own error
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
