package mpibench

import (
	"context"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/overlap"
	"github.com/softrnic/softrnic/mpi"
)

// An Async is a transfer from rank 0 to rank 1 that rank 0 starts, and for which it waits later.
type Async string

// The transfers, which are also parts of names of series.
const (
	AsyncSend Async = "isend" // rank 1 is in Recv
	AsyncPut  Async = "put"   // into a window; rank 1 does nothing
)

// An overlapRound requests transfers of rank 0 beside a computation.
type overlapRound struct {
	Async       Async
	Size, Count int
}

// Overlap computes at rank 0 beside count transfers of size bytes.
func (j *Job) Overlap(ctx context.Context, a Async, size, count int) (overlap.Result, error) {
	first, err := j.callRanks(ctx, request{Overlap: &overlapRound{a, size, count}})
	return first.Overlap, err
}

// StolenRounds returns rounds in which rank 0 computes for d of processor time, and nothing is sent.
// The figure is the processor time that other goroutines take, in percent of that of the process.
func (j *Job) StolenRounds(d time.Duration) measure.Round {
	return func(ctx context.Context) (float64, error) {
		first, err := j.callRanks(ctx, request{Compute: d})
		return first.Stolen, err
	}
}

func (w rank) runOverlap(r overlapRound) (overlap.Result, error) {
	message := make([]byte, r.Size)
	for i := range message {
		message[i] = byte(i*131 + i>>8)
	}
	switch r.Async {
	case AsyncSend:
		return w.overlapSends(r, message)
	case AsyncPut:
		return w.overlapPuts(r, message)
	}
	return overlap.Result{}, fmt.Errorf("mpibench: unknown transfer %q", r.Async)
}

// overlapSends measures messages, which rank 1 acknowledges by an empty one.
func (w rank) overlapSends(r overlapRound, message []byte) (result overlap.Result, err error) {
	switch w.Rank() {
	case 0:
		return overlap.Measure(func() (overlap.Wait, error) {
			sent, err := w.Isend(mpi.Bytes(message), 1, 0)
			return func() error {
				if _, err := sent.Wait(); err != nil {
					return err
				}
				_, err := w.Recv(mpi.Bytes(nil), 1, 0)
				return err
			}, err
		}, r.Count)
	case 1:
		in := make([]byte, r.Size)
		for range overlap.Transfers(r.Count) {
			if _, err := w.Recv(mpi.Bytes(in), 0, 0); err != nil {
				return result, err
			}
			if err := w.Send(mpi.Bytes(nil), 0, 0); err != nil {
				return result, err
			}
		}
		return result, verifyTransfer(in, message)
	}
	return result, nil
}

// overlapPuts measures puts into a window of rank 1.
func (w rank) overlapPuts(r overlapRound, message []byte) (result overlap.Result, err error) {
	win, memory, err := mpi.WinAllocate[byte](w.Comm, r.Size)
	if err != nil {
		return result, err
	}
	if w.Rank() == 0 {
		if err := win.Lock(mpi.LockShared, 1); err != nil {
			return result, err
		}
		result, err = overlap.Measure(func() (overlap.Wait, error) {
			err := win.Put(mpi.Bytes(message), 1, mpi.At(0))
			return func() error { return win.Flush(1) }, err
		}, r.Count)
		if err != nil {
			return result, err
		}
		if err := win.Unlock(1); err != nil {
			return result, err
		}
	}
	if err := w.Barrier(); err != nil {
		return result, err
	}
	if w.Rank() == 1 {
		if err := win.Lock(mpi.LockShared, 1); err != nil {
			return result, err
		}
		err = verifyTransfer(memory, message)
		if err := win.Unlock(1); err != nil {
			return result, err
		}
	}
	if err != nil {
		return result, err
	}
	return result, win.Free()
}

func verifyTransfer(got, want []byte) error {
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("wrong data: byte %d of %d: 0x%02x, want 0x%02x", i, len(want), got[i], want[i])
		}
	}
	return nil
}
