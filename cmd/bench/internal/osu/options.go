package osu

import (
	"fmt"
	"io"
)

// Options say what to measure. Defaults has those of a test.
type Options struct {
	Min, Max int  // -m: bytes of the messages; the sizes are Min, and twice as much while it is at most Max
	Type     Type // -T: of the elements

	// -i, -x: how often, and how often before that without the clock, for messages
	// of up to 8 KiB and larger ones.
	Small, Large Rounds

	Window    int      // -W: messages under way, of the bandwidths
	Multiple  bool     // -b multiple: each of them has memory of its own
	Pairs     int      // -p: of ranks, of mbw_mr; 0 is all
	NoRate    bool     // -R 0: mbw_mr shows no messages
	Senders   int      // -t: threads of rank 0 in latency_mt, processes in latency_mp
	Receivers int      // -t: of rank 1
	Root      int      // -k fixed:N: of Bcast, Gather, Reduce, Scatter and their like
	Rotate    bool     // -k rotate: each time the next
	MemLimit  int      // -M: bytes that a collective's rank may take; sizes that need more are left out
	Full      bool     // -f: show least and most, too
	Validate  bool     // -c: look at the data
	Sync      Sync     // -s: of operations on windows
	Creation  Creation // -w: how windows are made
	Tail      []int    // -z: percentiles to show, from 0 to 100

	Out io.Writer // rank 0 writes the table here, if it is not nil
}

// Rounds is how often something is done.
type Rounds struct{ Iterations, Warmup int }

// largeMessage is the size above which Options.Large counts.
const largeMessage = 8192

// Type is what messages are made of.
type Type uint8

// The types. As in C they have 1, 4, 4 and 8 bytes. The originals have no Long,
// which is what adapters have atomic operations of.
const (
	Char Type = iota
	Int
	Float
	Long
)

var types = []string{"mpi_char", "mpi_int", "mpi_float", "mpi_long"}

// String is the name for -T.
func (t Type) String() string {
	if int(t) < len(types) {
		return types[t]
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// ParseType reads a name for -T.
func ParseType(s string) (Type, error) {
	for i, name := range types {
		if s == name {
			return Type(i), nil
		}
	}
	return 0, fmt.Errorf("%w: type %q: want mpi_char, mpi_int, mpi_float or mpi_long", ErrOptions, s)
}

// elemSize is an element's, in bytes.
func (t Type) elemSize() int {
	switch t {
	case Char:
		return 1
	case Long:
		return 8
	}
	return 4
}

// Defaults are a test's options as the originals have them.
func Defaults(t Test) Options {
	o := Options{Min: 1, Max: 4 << 20, Window: 64, Senders: 1, Receivers: 2, MemLimit: 512 << 20,
		Small: Rounds{10000, 100}, Large: Rounds{1000, 10}}
	switch {
	case t.coll != nil:
		o.Max, o.Small, o.Large = 1<<20, Rounds{1000, 100}, Rounds{100, 10}
	case t.shape != showLatency:
		o.Small, o.Large = Rounds{100, 10}, Rounds{20, 2}
	case t.Name == "latency_mt" || t.Name == "latency_mp":
		o.Min = 0
	}
	if t.win != nil && t.win.bidirectional {
		o.Sync = PSCW
	}
	return o
}

// maxSize keeps sizes within what can be counted on any machine.
const maxSize = 1 << 30

// Check says what Run would refuse: an ErrTest, ErrRanks or ErrOptions, or nil.
func (o Options) Check(t Test, ranks int) error {
	if t.measure == nil {
		return fmt.Errorf("%w: %q", ErrTest, t.Name)
	}
	if err := t.checkRanks(ranks); err != nil {
		return err
	}
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrOptions}, args...)...)
	}
	switch {
	case o.Min < 0 || o.Max < o.Min || o.Max > maxSize:
		return wrong("messages of %d to %d bytes: want 0 <= min <= max <= %d", o.Min, o.Max, maxSize)
	case o.Small.Iterations < 1 || o.Large.Iterations < 1 || o.Small.Warmup < 0 || o.Large.Warmup < 0:
		return wrong("%d and %d iterations after %d and %d: want at least one, and not a negative number before",
			o.Small.Iterations, o.Large.Iterations, o.Small.Warmup, o.Large.Warmup)
	case int(o.Type) >= len(types):
		return wrong("there is no %v", o.Type)
	case o.Window < 1:
		return wrong("a window of %d", o.Window)
	case o.Senders < 1 || o.Receivers < 1:
		return wrong("%d senders and %d receivers: want at least one of each", o.Senders, o.Receivers)
	case o.Pairs < 0 || o.Pairs > ranks/2:
		return wrong("%d pairs of %d ranks", o.Pairs, ranks)
	case int(o.Sync) >= len(syncs):
		return wrong("there is no %v", o.Sync)
	case int(o.Creation) >= len(creations):
		return wrong("there is no %v", o.Creation)
	case t.win != nil && t.win.bidirectional && o.Sync != PSCW && o.Sync != Fence:
		return wrong("osu_%s has both ranks put, in epochs of pscw or fence, not %v", t.Name, o.Sync)
	case t.win != nil && t.win.integerOnly && o.Type == Float:
		return wrong("osu_%s compares integers, not %v", t.Name, o.Type)
	case o.Root < 0 || o.Root >= ranks:
		return wrong("root %d of %d ranks", o.Root, ranks)
	}
	for _, p := range o.Tail {
		if p < 0 || p > 100 {
			return wrong("percentile %d", p)
		}
	}
	if o.Validate && t.Name == "latency_mt" && o.Senders != o.Receivers {
		return wrong("latency_mt can look at its data if there are as many senders as receivers: -t %d:%[1]d", o.Receivers)
	}
	return nil
}
