package imb

import (
	"fmt"
	"io"
	"time"
)

// Options say how to measure. Defaults has what the original does unless told.
type Options struct {
	MinRanks    int           // -npmin: ranks of the first group
	MinLog      int           // -msglog: sizes are 0 and the powers of two from this
	MaxLog      int           // to this one
	Sizes       []int         // -msgsize: these, and no others
	Repetitions int           // -iter: at most
	Volume      int           // -iter: bytes of a rank; repetitions are as many as that allows
	Time        time.Duration // -time: of one size; repetitions are as many as that allows. 0 is no limit (-iter_policy off)
	Memory      int           // -mem: bytes that a rank may take; sizes that need more are not measured
	Window      int           // -window_size: messages under way, of Uniband and Biband
	RootShift   bool          // -root_shift: each time the next rank is the root
	NoSync      bool          // -sync off: no barrier between the repetitions of a collective
	NoWarmUp    bool          // -warm_up off

	Out io.Writer // rank 0 writes the output here, if it is not nil
}

// Defaults are the options as the original has them.
func Defaults() Options {
	return Options{MinRanks: 2, MinLog: 0, MaxLog: 22, Repetitions: 1000, Volume: 40 << 20, Time: 10 * time.Second, Memory: 1 << 30, Window: 256}
}

// maxLog keeps sizes within what can be counted on any machine.
const maxLog = 29

// Check says what Run would refuse: an ErrBenchmark, ErrRanks or ErrOptions, or nil.
func (o Options) Check(list []Benchmark, ranks int) error {
	for _, b := range list {
		if b.execute == nil {
			return fmt.Errorf("%w: %q", ErrBenchmark, b.Name)
		}
		if _, err := b.groupSizes(1, ranks); err != nil {
			return err
		}
	}
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrOptions}, args...)...)
	}
	switch {
	case o.MinRanks < 1:
		return wrong("at least %d ranks", o.MinRanks)
	case o.MinLog < 0 || o.MaxLog < o.MinLog || o.MaxLog > maxLog:
		return wrong("sizes of 2^%d to 2^%d bytes: want 0 <= min <= max <= %d", o.MinLog, o.MaxLog, maxLog)
	case o.Repetitions < 1 || o.Volume < 0 || o.Time < 0 || o.Memory < 0:
		return wrong("%d repetitions, %d bytes in all, %v, %d bytes of memory: want at least one, and nothing negative", o.Repetitions, o.Volume, o.Time, o.Memory)
	case o.Window < 1:
		return wrong("a window of %d", o.Window)
	}
	for _, size := range o.Sizes {
		if size < 0 || size > 1<<maxLog {
			return wrong("a size of %d: want 0 to %d", size, 1<<maxLog)
		}
	}
	return nil
}

// float is the bytes of an element of a reduction.
const float = 4

// sizesFor are those of a benchmark. Reductions are of whole elements.
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
