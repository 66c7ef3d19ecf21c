package measure

import (
	"context"
	"runtime"
	"time"
)

// Units of Usage.
const (
	PercentOfProcessor = "% of a processor"
	WakeupsPerSecond   = "wake-ups/s"
)

// Usage is the cost of this process while it waits.
type Usage struct {
	Processor float64 // processor time, user and system, in percent of the time that passed
	Wakeups   float64 // voluntary context switches of all threads per second: returns from sleep
}

// MaxUsage returns the larger processor time and the larger number of wake-ups of a list, which
// may be those of different processes.
func MaxUsage(list []Usage) (most Usage) {
	for _, u := range list {
		most.Processor, most.Wakeups = max(most.Processor, u.Processor), max(most.Wakeups, u.Wakeups)
	}
	return most
}

// UsageOf returns the usage of the process while f runs. It first collects garbage, so that the
// collector does not run meanwhile.
func UsageOf(f func() error) (Usage, error) {
	runtime.GC()
	before, wakeups, err := processUsage()
	if err != nil {
		return Usage{}, err
	}
	began := time.Now()
	if err := f(); err != nil {
		return Usage{}, err
	}
	seconds := time.Since(began).Seconds()
	after, last, err := processUsage()
	if err != nil {
		return Usage{}, err
	}
	return Usage{100 * (after - before).Seconds() / seconds, float64(last-wakeups) / seconds}, nil
}

// ProcessorTime returns the processor time of the process so far, user and system, or 0 if the
// system does not report it.
func ProcessorTime() time.Duration {
	d, _, err := processUsage()
	if err != nil {
		return 0
	}
	return d
}

// settleTime is the time that a process has to end its spins and start to wait.
const settleTime = 500 * time.Millisecond

// IdleUsage returns the usage of the process while it waits for d, after it has settled.
func IdleUsage(ctx context.Context, d time.Duration) (Usage, error) {
	if err := sleep(ctx, settleTime); err != nil {
		return Usage{}, err
	}
	return UsageOf(func() error { return sleep(ctx, d) })
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
