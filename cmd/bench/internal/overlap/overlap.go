// Package overlap measures a computation beside transfers: how much of a transfer the computation
// hides, and how much processor time the transfers take from it.
//
// A process measures itself. With a transfer that it starts and waits for:
//
//	result, err := overlap.Measure(func() (overlap.Wait, error) {
//		err := win.Put(buf, 1, at)
//		return func() error { return win.Flush(1) }, err
//	}, 20)
//	fmt.Println(result.Overlap(), result.LeftPercent())
//
// With transfers that others start, or none:
//
//	percent, err := overlap.Stolen(20 * time.Millisecond)
//
// The computation is counted in processor time, so that other processes of the machine do not change
// its amount.
package overlap

import (
	"slices"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// A Wait waits until a transfer is complete.
type Wait func() error

// A Result has medians of transfers, first alone and then each beside a computation that takes as
// long, as in the tests of OSU and Intel for nonblocking operations.
type Result struct {
	Transfer time.Duration // of a transfer alone
	Compute  time.Duration // processor time of the computation alone
	Both     time.Duration // of the transfer with the computation between its start and the wait
	Left     time.Duration // of the wait behind the computation, within Both

	// Processor is the processor time of the process beyond that of the computation, for one transfer. A
	// process with one processor cannot hide it.
	Processor time.Duration
}

// Overlap returns the share of the shorter of transfer and computation that the longer one hides,
// from 0 to 1.
func (r Result) Overlap() float64 {
	longer, shorter := max(r.Transfer, r.Compute), min(r.Transfer, r.Compute)
	return min(max(1-float64(r.Both-longer)/float64(max(shorter, 1)), 0), 1)
}

// LeftPercent returns the share of a transfer that is left when the computation ends. The rest of
// the missing overlap is processor time that the transfer takes from the computation.
func (r Result) LeftPercent() float64 {
	return 100 * float64(r.Left) / float64(max(r.Transfer, 1))
}

// ProcessorPercent returns the processor time of a transfer in percent of its length alone.
func (r Result) ProcessorPercent() float64 {
	return 100 * float64(max(r.Processor, 0)) / float64(max(r.Transfer, 1))
}

// Measure runs start count times alone and count times beside a computation.
func Measure(start func() (Wait, error), count int) (r Result, err error) {
	unit := calibrate()
	run := func(units int) (whole, left time.Duration, err error) {
		began := time.Now()
		wait, err := start()
		if err != nil {
			return 0, 0, err
		}
		compute(units)
		computed := time.Now()
		err = wait()
		return time.Since(began), time.Since(computed), err
	}
	alone, whole, left := make([]time.Duration, count), make([]time.Duration, count), make([]time.Duration, count)
	for i := -warmup; i < count; i++ {
		took, _, err := run(0)
		if err != nil {
			return r, err
		}
		if i >= 0 {
			alone[i] = took
		}
	}
	r.Transfer = median(alone)
	units := max(1, int(r.Transfer/unit))
	r.Compute = time.Duration(units) * unit
	processor := measure.ProcessorTime()
	for i := -warmup; i < count; i++ {
		took, rest, err := run(units)
		if err != nil {
			return r, err
		}
		if i >= 0 {
			whole[i], left[i] = took, rest
		}
	}
	r.Processor = (measure.ProcessorTime()-processor)/time.Duration(warmup+count) - r.Compute
	r.Both, r.Left = median(whole), median(left)
	return r, nil
}

// Transfers returns how often Measure calls start with a count.
func Transfers(count int) int { return 2 * (warmup + count) }

const warmup = 2

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

// Stolen computes for d of processor time, and returns the processor time that the process has needed
// beyond that of the computation alone, in percent of all. The surplus is that of other threads,
// such as a service, and of caches that they have changed. A process that is bound to one processor
// computes so much longer.
func Stolen(d time.Duration) float64 {
	unit := calibrate()
	units := max(1, int(d/unit))
	before := measure.ProcessorTime()
	compute(units)
	all := measure.ProcessorTime() - before
	return 100 * max(0, 1-float64(units)*float64(unit)/float64(max(all, 1)))
}
