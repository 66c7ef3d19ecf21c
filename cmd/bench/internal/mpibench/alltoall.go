package mpibench

import (
	"context"
	"fmt"
	"runtime"

	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/datatype"
)

// Alltoall is how a job does that, other than its carrier's table has it.
type Alltoall struct {
	Algorithm string // one of package coll; empty: by the table
	Net       mpi.Net
	RCLimit   int  // of mpi.Hybrid
	Shared    bool // in memory that the ranks have in common, as far as there is room
}

func (a Alltoall) applyTo(o *mpi.Options) {
	o.Net, o.RCLimit, o.NoShared = a.Net, a.RCLimit, !a.Shared
	if a.Algorithm != "" {
		o.Algorithms = mpi.Algorithms{mpi.Alltoall: a.Algorithm}
	}
}

// Memory is what a rank takes.
type Memory struct {
	Heap        float64 // bytes that are in use, after all ranks have talked to all
	Connections float64 // that it has
}

// Memory is the average over the ranks, after an Alltoall in which all talk to all.
func (j *Job) Memory(ctx context.Context) (mean Memory, err error) {
	ranks, err := proc.Call[request, reply](ctx, j.g, request{Memory: true})
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
	for range 2 { // the second one ends when all have had the first
		if err := w.Alltoall(datatype.Bytes(send), datatype.Bytes(recv)); err != nil {
			return nil, err
		}
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return &Memory{Heap: float64(m.HeapAlloc), Connections: float64(w.Stats()["connections"])}, nil
}
