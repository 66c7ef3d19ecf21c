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

// tellWhereabouts is called before the ranks' first fence.
func tellWhereabouts(m pmi.Manager) error {
	host, _ := os.Hostname()
	return m.Put(whereaboutsKey(m.Rank()), fmt.Sprintf("%s, pid %d", cmp.Or(host, "unknown host"), os.Getpid()))
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
