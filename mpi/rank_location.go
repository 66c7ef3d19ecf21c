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

// publishLocation publishes host and process of this rank before the first fence, and the
// reason if the rank does not start.
func publishLocation(m pmi.Manager, failed error) error {
	host, _ := os.Hostname()
	text := fmt.Sprintf("%s, pid %d", cmp.Or(host, "unknown host"), os.Getpid())
	if failed != nil {
		text = fmt.Sprintf("%s, not started: %v", text, failed)
	}
	return m.Put(locationKey(m.Rank()), text)
}

// joinFirstFence joins the first fence in the background for a rank whose Init has failed, so
// that the others do not wait there for startTimeout. They find no address of the rank, and
// their calls with it return an ErrLost with the reason.
func joinFirstFence(m pmi.Manager, failed error) {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		if publishLocation(m, failed) == nil {
			_ = m.Fence(ctx) // Init has returned its own error
		}
	}()
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
