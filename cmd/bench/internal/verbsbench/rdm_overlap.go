package verbsbench

import (
	"context"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/overlap"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

// An overlapRound requests a computation of rank 0 beside reads.
type overlapRound struct {
	Reads readsBeside
	Count int           // of origin: windows of reads
	For   time.Duration // of the others: processor time of the computation
}

// readsBeside are the reads that run beside a computation.
type readsBeside string

const (
	noReads     readsBeside = "none"
	readsOfPeer readsBeside = "peer" // rank 1 reads memory of rank 0
	ownReads    readsBeside = "own"  // rank 0 reads memory of rank 1
)

// computeTimeout is the maximum duration of a computation that shares its processor with a service.
const computeTimeout = time.Minute

// StolenRounds returns rounds in which rank 0 computes for d of processor time, without traffic. The
// figure is the processor time that its service takes, in percent of that of the process.
func (s *RDM) StolenRounds(d time.Duration) measure.Round {
	return func(ctx context.Context) (float64, error) {
		first, err := s.callFirst(ctx, request{Overlap: &overlapRound{Reads: noReads, For: d}})
		return first.Stolen, err
	}
}

// LoadedRounds is StolenRounds while rank 1 reads memory of rank 0 all the time. The bandwidth of
// the reads in MB/s is added to rates.
func (s *RDM) LoadedRounds(d time.Duration, rates *[]float64) measure.Round {
	return func(ctx context.Context) (float64, error) {
		ends, err := s.callBoth(ctx, request{Overlap: &overlapRound{Reads: readsOfPeer, For: d}})
		if err != nil {
			return 0, err
		}
		*rates = append(*rates, ends[1].Flow.MBps())
		return ends[0].Stolen, nil
	}
}

// Overlap computes at rank 0 beside its own reads, count windows of them.
func (s *RDM) Overlap(ctx context.Context, count int) (overlap.Result, error) {
	first, err := s.callFirst(ctx, request{Overlap: &overlapRound{Reads: ownReads, Count: count}})
	return first.Overlap, err
}

func (r *rdmSide) runOverlap(ctx context.Context, q overlapRound) (out reply, err error) {
	switch {
	case q.Reads == ownReads && r.Rank == 0:
		first := r.region.Bytes()[r.slotOffset(0):][:r.o.Size]
		clear(first)
		out.Overlap, err = overlap.Measure(func() (overlap.Wait, error) { return r.startWindow(ctx) }, q.Count)
		if err == nil {
			err = r.payloadPattern(r.o.Size).Check(first, false)
		}
	case q.Reads == readsOfPeer && r.Rank == 1:
		out.Flow, err = r.readUntilEnd(ctx)
	case q.Reads != ownReads && r.Rank == 0:
		out.Stolen = overlap.Stolen(q.For)
		if q.Reads == readsOfPeer {
			err = r.writeEndFlag(ctx)
		}
	}
	if err != nil {
		return reply{}, err
	}
	return out, proc.Barrier(ctx, r.Worker)
}

// startWindow starts as many reads as may be in flight.
func (r *rdmSide) startWindow(ctx context.Context) (overlap.Wait, error) {
	for i := range r.ops {
		if err := r.peer.Read(&r.ops[i], r.region.At(r.slotOffset(i), r.o.Size), r.remote.Add(r.slotOffset(i))); err != nil {
			return nil, err
		}
	}
	return func() error { return r.waitAll(ctx) }, nil
}

func (r *rdmSide) waitAll(ctx context.Context) error {
	for i := range r.ops {
		if err := r.ops[i].Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// readUntilEnd reads memory of rank 0 until that signals the end of the round. The end flag is a
// write by rank 0, which is executed here meanwhile.
func (r *rdmSide) readUntilEnd(ctx context.Context) (*Flow, error) {
	begin := time.Now()
	n := 0
	for ; r.region.LoadUint64(r.endFlagOffset()) != uint64(r.rounds); n++ {
		op := &r.ops[n%rdmWindow]
		if err := op.Wait(ctx); err != nil {
			return nil, err
		}
		if err := r.peer.Read(op, r.region.At(r.slotOffset(n), r.o.Size), r.remote.Add(r.slotOffset(n))); err != nil {
			return nil, err
		}
		if n%1024 == 0 && time.Since(begin) > computeTimeout {
			return nil, fmt.Errorf("verbsbench: reads of rdm-%s: the computation of rank 0 did not end within %v", r.o.Op, computeTimeout)
		}
	}
	if err := r.waitAll(ctx); err != nil {
		return nil, err
	}
	return &Flow{Messages: int64(n), Sent: int64(n), Bytes: int64(n) * int64(r.o.Size), Elapsed: time.Since(begin)}, nil
}
