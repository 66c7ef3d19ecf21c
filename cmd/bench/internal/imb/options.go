package imb

import (
	"fmt"
	"io"
	"time"
)

// Options are the options of Run. Defaults returns those of the original.
type Options struct {
	MinRanks    int           // -npmin: number of ranks of the first group
	MinLog      int           // -msglog: sizes are 0 and 2^MinLog to 2^MaxLog
	MaxLog      int           // -msglog
	Sizes       []int         // -msgsize: replaces the sizes of -msglog
	Repetitions int           // -iter: maximum number of repetitions
	Volume      int           // -iter: maximum bytes that a rank sends for one size
	Time        time.Duration // -time: maximum time for one size; 0 means no limit (-iter_policy off)
	Memory      int           // -mem: memory limit of a rank in bytes; larger sizes are skipped
	Window      int           // -window_size: messages in flight in Uniband and Biband
	RootShift   bool          // -root_shift: the next rank is the root of each call
	NoSync      bool          // -sync off: no barrier between the repetitions of a collective
	NoWarmUp    bool          // -warm_up off

	Out io.Writer // destination of the output at rank 0; may be nil
}

// Defaults returns the default options of the original.
func Defaults() Options {
	return Options{MinRanks: 2, MinLog: 0, MaxLog: 22, Repetitions: 1000, Volume: 40 << 20, Time: 10 * time.Second, Memory: 1 << 30, Window: 256}
}

// maxLog limits sizes, so that counts fit into an int on any platform.
const maxLog = 29

// Check returns the error with which Run would fail: an ErrBenchmark, ErrRanks or ErrOptions,
// or nil.
func (o Options) Check(list []Benchmark, ranks int) error {
	for _, b := range list {
		if b.execute == nil {
			return fmt.Errorf("%w: %q", ErrBenchmark, b.Name)
		}
		if _, err := b.groupSizes(1, ranks); err != nil {
			return err
		}
	}
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrOptions}, args...)...)
	}
	switch {
	case o.MinRanks < 1:
		return invalid("minimum number of ranks %d: want at least 1", o.MinRanks)
	case o.MinLog < 0 || o.MaxLog < o.MinLog || o.MaxLog > maxLog:
		return invalid("sizes 2^%d to 2^%d bytes: want 0 <= min <= max <= %d", o.MinLog, o.MaxLog, maxLog)
	case o.Repetitions < 1 || o.Volume < 0 || o.Time < 0 || o.Memory < 0:
		return invalid("%d repetitions, %d bytes in total, %v, %d bytes of memory: want at least 1 repetition and no negative limit", o.Repetitions, o.Volume, o.Time, o.Memory)
	case o.Window < 1:
		return invalid("window size %d: want at least 1", o.Window)
	}
	for _, size := range o.Sizes {
		if size < 0 || size > 1<<maxLog {
			return invalid("size %d: want 0 to %d", size, 1<<maxLog)
		}
	}
	return nil
}

// float is the size of an element of a reduction in bytes.
const float = 4

// sizesFor returns the sizes of a benchmark. Those of reductions are multiples of the element
// size.
func (o *Options) sizesFor(b Benchmark) (list []int) {
	if b.class == sync {
		return []int{0}
	}
	from := 1
	if b.reduces {
		from = float
	}
	if o.Sizes != nil {
		for _, size := range o.Sizes {
			if size%from == 0 {
				list = append(list, size)
			}
		}
		return list
	}
	list = append(list, 0)
	for log := o.MinLog; log <= o.MaxLog; log++ {
		if size := 1 << log; size >= from {
			list = append(list, size)
		}
	}
	return list
}
