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

// rankLocations returns the host and the process of ranks, for error texts. Each rank publishes
// its own before the first fence; others are read from the process manager on demand.
type rankLocations struct {
	manager pmi.Manager
	known   sync.Map // by rank
}

func locationKey(rank int) string { return fmt.Sprintf("process/%d", rank) }

// publishLocation must be called before the first fence.
func publishLocation(m pmi.Manager) error {
	host, _ := os.Hostname()
	return m.Put(locationKey(m.Rank()), fmt.Sprintf("%s, pid %d", cmp.Or(host, "unknown host"), os.Getpid()))
}

// locationTimeout is the time in which the process manager must reply.
const locationTimeout = time.Second

// lookup returns the host and the process id of a rank, "" if the process manager does not
// return them.
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
