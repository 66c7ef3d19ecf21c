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
	Heap        float64 // heap bytes in use since before Init
	Connections float64 // open connections
}

// Traffic is the communication before a measurement of memory.
type Traffic string

const (
	Idle    Traffic = "idle"  // none
	OneByte Traffic = "byte"  // all ranks exchange a byte with each other
	Flood   Traffic = "flood" // each rank sends floodMessages messages of floodBytes to all others, which receive later
)

const (
	floodMessages = 16
	floodBytes    = 4 << 10
)

// Memory returns the average over the ranks after the given traffic.
func (j *Job) Memory(ctx context.Context, after Traffic) (mean Memory, err error) {
	ranks, err := proc.Call[request, reply](ctx, j.Group, request{Memory: after})
	if err != nil {
		return Memory{}, fmt.Errorf("%s: %w", j.Transport, err)
	}
	for _, r := range ranks {
		mean.Heap += r.Memory.Heap / float64(len(ranks))
		mean.Connections += r.Memory.Connections / float64(len(ranks))
	}
	return mean, nil
}

func (w rank) measureMemory(after Traffic) (_ *Memory, err error) {
	switch after {
	case Idle:
	case OneByte:
		err = w.exchangeBytes()
	case Flood:
		err = w.flood()
	default:
		err = fmt.Errorf("mpibench: unknown traffic %q", after)
	}
	if err != nil {
		return nil, err
	}
	return &Memory{Heap: heapBytes() - w.before, Connections: float64(w.Stats().Connections)}, nil
}

// heapBytes returns the heap bytes in use.
func heapBytes() float64 {
	runtime.GC()
	runtime.GC() // frees objects released by the first collection
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// exchangeBytes exchanges a byte with each rank.
func (w rank) exchangeBytes() error {
	send, recv := make([]byte, w.Size()), make([]byte, w.Size())
	for range 2 { // the second call ends after all ranks have completed the first
		if err := w.Alltoall(mpi.Bytes(send), mpi.Bytes(recv)); err != nil {
			return err
		}
	}
	return nil
}

// flood sends messages to all other ranks before it receives theirs.
func (w rank) flood() error {
	message, sends := make([]byte, floodBytes), []*mpi.Request(nil)
	for range floodMessages {
		for to := range w.Size() {
			if to == w.Rank() {
				continue
			}
			r, err := w.Isend(mpi.Bytes(message), to, 0)
			if err != nil {
				return err
			}
			sends = append(sends, r)
		}
	}
	received := make([]byte, floodBytes)
	for range floodMessages * (w.Size() - 1) {
		if _, err := w.Recv(mpi.Bytes(received), mpi.AnySource, 0); err != nil {
			return err
		}
	}
	if _, err := mpi.WaitAll(sends...); err != nil {
		return err
	}
	return w.Barrier()
}
