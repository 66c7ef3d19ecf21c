package osu

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/softrnic/softrnic/internal/spelling"
)

// Options are the options of a test. Defaults returns those of the original.
type Options struct {
	Min, Max int  // -m: message size in bytes, from Min to Max in powers of two
	Type     Type // -T: element type

	// -i, -x: iterations and warm-up, for messages of up to 8 KiB and larger ones.
	Small, Large Rounds

	Window    int      // -W: messages in flight in bandwidth tests
	Multiple  bool     // -b multiple: each message in flight has its own buffer
	Pairs     int      // -p: pairs of ranks in mbw_mr; 0 means all
	NoRate    bool     // -R 0: mbw_mr does not print the message rate
	Senders   int      // -t: threads of rank 0 in latency_mt, processes in latency_mp
	Receivers int      // -t: threads or processes of rank 1
	Root      int      // -k fixed:N: root of rooted collectives
	Rotate    bool     // -k rotate: the next rank is the root of each call
	MemLimit  int      // -M: memory limit of a rank in bytes; larger sizes are skipped
	Full      bool     // -f: print minimum and maximum
	Validate  bool     // -c: validate the data
	Sync      Sync     // -s: synchronization of operations on windows
	Creation  Creation // -w: creation of windows
	Tail      []int    // -z: percentiles to print, from 0 to 100

	Out io.Writer // destination of the table at rank 0; may be nil
}

// Rounds are the numbers of measured and of warm-up iterations.
type Rounds struct{ Iterations, Warmup int }

// largeMessage is the size above which Options.Large applies.
const largeMessage = 8192

// A Type is the element type of messages.
type Type uint8

// The types. As in C they have 1, 4, 4 and 8 bytes. The original has no Long, the type of the
// atomic operations of adapters.
const (
	Char Type = iota
	Int
	Float
	Long
)

var types = []string{"mpi_char", "mpi_int", "mpi_float", "mpi_long"}

// String returns the name for -T.
func (t Type) String() string {
	if int(t) < len(types) {
		return types[t]
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// ParseType parses a name for -T.
func ParseType(s string) (Type, error) {
	for i, name := range types {
		if s == name {
			return Type(i), nil
		}
	}
	return 0, fmt.Errorf("%w: type %q: want mpi_char, mpi_int, mpi_float or mpi_long%s", ErrOptions, s, spelling.Hint(s, types[:]...))
}

// elemSize returns the size of an element in bytes.
func (t Type) elemSize() int {
	switch t {
	case Char:
		return 1
	case Long:
		return 8
	}
	return 4
}

// Defaults returns the default options of a test, which are those of the original.
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

// maxSize limits sizes, so that counts fit into an int on any platform.
const maxSize = 1 << 30

// Check returns the error with which Run would fail: an ErrTest, ErrRanks or ErrOptions, or
// nil.
func (o Options) Check(t Test, ranks int) error {
	if t.measure == nil {
		return fmt.Errorf("%w: %q", ErrTest, t.Name)
	}
	if err := t.checkRanks(ranks); err != nil {
		return err
	}
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrOptions}, args...)...)
	}
	switch {
	case o.Min < 0 || o.Max < o.Min || o.Max > maxSize:
		return invalid("message sizes %d to %d bytes: want 0 <= min <= max <= %d", o.Min, o.Max, maxSize)
	case o.Small.Iterations < 1 || o.Large.Iterations < 1 || o.Small.Warmup < 0 || o.Large.Warmup < 0:
		return invalid("%d and %d iterations, %d and %d warm-up iterations: want at least 1 and at least 0",
			o.Small.Iterations, o.Large.Iterations, o.Small.Warmup, o.Large.Warmup)
	case int(o.Type) >= len(types):
		return invalid("unknown type %v", o.Type)
	case o.Window < 1:
		return invalid("window size %d: want at least 1", o.Window)
	case o.Senders < 1 || o.Receivers < 1:
		return invalid("%d senders, %d receivers: want at least 1 each", o.Senders, o.Receivers)
	case o.Pairs < 0 || o.Pairs > ranks/2:
		return invalid("%d pairs on %d ranks", o.Pairs, ranks)
	case int(o.Sync) >= len(syncs):
		return invalid("unknown synchronization %v", o.Sync)
	case int(o.Creation) >= len(creations):
		return invalid("unknown window creation %v", o.Creation)
	case t.win != nil && t.win.bidirectional && o.Sync != PSCW && o.Sync != Fence:
		return invalid("osu_%s: synchronization %v: want pscw or fence", t.Name, o.Sync)
	case t.win != nil && t.win.integerOnly && o.Type == Float:
		return invalid("osu_%s: type %v: want an integer type", t.Name, o.Type)
	case o.Root < 0 || o.Root >= ranks:
		return invalid("root %d on %d ranks", o.Root, ranks)
	}
	for _, p := range o.Tail {
		if p < 0 || p > 100 {
			return invalid("percentile %d: want 0 to 100", p)
		}
	}
	if o.Validate && t.Name == "latency_mt" && o.Senders != o.Receivers {
		return invalid("latency_mt: validation needs as many senders as receivers: -t %d:%[2]d", o.Receivers)
	}
	return nil
}

// A Test is one of the benchmarks.
type Test struct {
	Name  string // without osu_
	Title string // title in the output: "Latency"

	pairs   bool // runs on any number of pairs of ranks, instead of two ranks
	measure func(*runner, round) (Row, error)
	coll    *collective // set for collectives
	win     *oneSided   // set for one-sided tests
	shape   shape
}

// A shape is the kind of figures in a row.
type shape uint8

const (
	showLatency shape = iota
	showBandwidth
	showRate // bandwidth and message rate
)

var pointToPoint = []Test{
	{Name: "latency", Title: "Latency", measure: (*runner).measureLatency},
	{Name: "bw", Title: "Bandwidth", measure: (*runner).measureBandwidth, shape: showBandwidth},
	{Name: "bibw", Title: "Bi-Directional Bandwidth", measure: (*runner).measureBandwidth, shape: showBandwidth},
	{Name: "mbw_mr", Title: "Multiple Bandwidth / Message Rate", measure: (*runner).measureBandwidth, shape: showRate, pairs: true},
	{Name: "multi_lat", Title: "Multi Latency", measure: (*runner).measureLatency, pairs: true},
	{Name: "latency_mt", Title: "Multi-threaded Latency", measure: (*runner).measureLatencyMT},
	{Name: "latency_mp", Title: "Multi-process Latency", measure: (*runner).measureLatencyMP},
}

// Tests returns the benchmarks: 7 point-to-point, 15 collective, and 9 one-sided.
func Tests() []Test {
	list := append([]Test(nil), pointToPoint...)
	for i := range collectives {
		c := &collectives[i]
		list = append(list, Test{Name: c.name, Title: c.title + " Latency", measure: (*runner).measureCollective, coll: c})
	}
	for i := range oneSidedTests {
		w := &oneSidedTests[i]
		t := Test{Name: w.name, Title: w.title, measure: (*runner).measureOneSided, win: w}
		if w.windowed {
			t.shape = showBandwidth
		}
		list = append(list, t)
	}
	return list
}

// Errors wrapped by the errors of Find and Run.
var (
	ErrTest    = errors.New("osu: unknown test")
	ErrRanks   = errors.New("osu: invalid number of ranks")
	ErrOptions = errors.New("osu: invalid options")
	ErrInvalid = errors.New("osu: wrong data")
)

// Find returns the test with the given name, with or without the prefix osu_.
func Find(name string) (Test, error) {
	var names []string
	for _, t := range Tests() {
		if t.Name == strings.TrimPrefix(name, "osu_") {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return Test{}, fmt.Errorf("%w %q%s; known tests: %s", ErrTest, name, spelling.Hint(name, names...), strings.Join(names, ", "))
}

// IsCollective reports whether the test measures a collective.
func (t Test) IsCollective() bool { return t.coll != nil }

// IsOneSided reports whether the test measures operations on windows.
func (t Test) IsOneSided() bool { return t.win != nil }

// checkRanks returns an error if the test cannot run on the given number of ranks.
func (t Test) checkRanks(ranks int) error {
	switch {
	case t.coll == nil && !t.pairs && ranks != 2:
		return fmt.Errorf("%w: osu_%s: %d ranks, want 2", ErrRanks, t.Name, ranks)
	case ranks < 2:
		return fmt.Errorf("%w: osu_%s: %d ranks, want at least 2", ErrRanks, t.Name, ranks)
	}
	return nil
}
