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

// rankLocations is which process on which host each rank is, as ranks tell one another by
// the process manager before their first fence: for errors, and looked up for those alone.
type rankLocations struct {
	manager pmi.Manager
	known   sync.Map // by rank
}

func locationKey(rank int) string { return fmt.Sprintf("process/%d", rank) }

// publishLocation is called before the ranks' first fence.
func publishLocation(m pmi.Manager) error {
	host, _ := os.Hostname()
	return m.Put(locationKey(m.Rank()), fmt.Sprintf("%s, pid %d", cmp.Or(host, "unknown host"), os.Getpid()))
}

// locationTimeout is the time in which the process manager must reply.
const locationTimeout = time.Second

// lookup returns host and process of a rank, "" if the process manager does not tell.
func (x *rankLocations) lookup(rank int) string {
	if text, ok := x.known.Load(rank); ok {
		return text.(string)
	}
	ctx, cancel := context.WithTimeout(context.Background(), locationTimeout)
	defer cancel()
	text, _ := x.manager.Get(ctx, locationKey(rank))
	x.known.Store(rank, text)
	return text
}
