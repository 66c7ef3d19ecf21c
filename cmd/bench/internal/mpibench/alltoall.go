package mpibench

import (
	"context"
	"fmt"
	"runtime"

	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/mpi"
)

// Alltoall selects an implementation of Alltoall other than that of the algorithm table.
type Alltoall struct {
	Algorithm string // an algorithm of package coll; empty: selected by the table
	Net       mpi.Net
	RCLimit   int  // of mpi.Hybrid
	Shared    bool // in shared memory, for messages that fit
}

func (a Alltoall) applyTo(o *mpi.Options) {
	o.Net, o.RCLimit, o.NoShared = a.Net, a.RCLimit, !a.Shared
	if a.Algorithm != "" {
		o.Algorithms = map[string]string{"alltoall": a.Algorithm}
	}
}

// Memory is the memory use of a rank.
type Memory struct {
	Heap        float64 // heap bytes in use
	Connections float64 // open connections
}

// Memory returns the average over the ranks, after an Alltoall in which all ranks communicate
// with each other.
func (j *Job) Memory(ctx context.Context) (mean Memory, err error) {
	ranks, err := proc.Call[request, reply](ctx, j.Group, request{Memory: true})
	if err != nil {
		return Memory{}, fmt.Errorf("%s: %w", j.Transport, err)
	}
	for _, r := range ranks {
		mean.Heap += r.Memory.Heap / float64(len(ranks))
		mean.Connections += r.Memory.Connections / float64(len(ranks))
	}
	return mean, nil
}

func (w rank) measureMemory() (*Memory, error) {
	send, recv := make([]byte, w.Size()), make([]byte, w.Size())
	for range 2 { // the second call ends after all ranks have completed the first
		if err := w.Alltoall(mpi.Bytes(send), mpi.Bytes(recv)); err != nil {
			return nil, err
		}
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return &Memory{Heap: float64(m.HeapAlloc), Connections: float64(w.Stats().Connections)}, nil
}
