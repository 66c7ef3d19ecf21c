package sim_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/softrnic/softrnic/internal/racesync"
)

var oneSeed = flag.String("sim.seed", "", "run TestSeeds with this seed only and print its trace")

// Default number of seeds of TestSeeds.
const (
	seedsLong  = 10_000
	seedsRace  = 300 // a seed takes ten times as long with the race detector
	seedsShort = 300
)

// TestSeeds runs random programs on random networks. A failing seed is run again, and the end of
// its trace is printed.
func TestSeeds(t *testing.T) {
	if *oneSeed != "" {
		seed, err := strconv.ParseUint(*oneSeed, 0, 64)
		if err != nil {
			t.Fatalf("-sim.seed=%s is no number", *oneSeed)
		}
		trace, err := runSeed(seed, new(slab), nil)
		t.Log(trace)
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	first, last := seedRange(t)
	var next, failed atomic.Int64
	next.Store(first - 1)
	seen := &coverage{n: make(map[string]uint64)}
	t.Cleanup(func() {
		if n := last - first + 1; n >= seedsShort && next.Load() > last && !t.Failed() {
			seen.check(t, n)
		}
	})
	for i := range runtime.GOMAXPROCS(0) {
		t.Run(fmt.Sprint("shard", i), func(t *testing.T) {
			t.Parallel()
			mem := new(slab)
			for failed.Load() < 5 {
				seed := next.Add(1)
				if seed > last {
					return
				}
				if _, err := runSeed(uint64(seed), mem, seen); err != nil {
					failed.Add(1)
					report(t, uint64(seed), err)
				}
			}
		})
	}
}

// TestFailedSeeds runs seeds that failed once.
func TestFailedSeeds(t *testing.T) {
	for _, seed := range []uint64{
		138735, // the pacer let responses pass and no retransmission, until the retries were exhausted
		133963, // the oldest lost packet waited for a window that lost packets behind it filled
	} {
		if _, err := runSeed(seed, new(slab), nil); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// seedRange returns the seeds to run: from 1 on, or from SOFTRNIC_SEEDS, a number of them or a
// range such as 20000-30000.
func seedRange(t *testing.T) (first, last int64) {
	switch env := os.Getenv("SOFTRNIC_SEEDS"); {
	case env != "":
		if from, to, ok := strings.Cut(env, "-"); ok {
			return parseNumber(t, from), parseNumber(t, to)
		}
		return 1, parseNumber(t, env)
	case testing.Short():
		return 1, seedsShort
	case racesync.Enabled:
		return 1, seedsRace
	}
	return 1, seedsLong
}

func parseNumber(t *testing.T, s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 {
		t.Fatalf("SOFTRNIC_SEEDS: %q is no number of a seed; want for example 500 or 20000-30000", s)
	}
	return n
}

// report prints the information about a failed seed.
func report(t *testing.T, seed uint64, err error) {
	trace, again := runSeed(seed, new(slab), nil)
	lines := strings.Split(strings.TrimSuffix(trace, "\n"), "\n")
	const tail = 60
	if len(lines) > tail {
		lines = lines[len(lines)-tail:]
	}
	t.Errorf("seed %d: %v\nrerun: go test ./rnic/internal/sim -run TestSeeds -sim.seed=%d -v\nthe end of its trace:\n%s",
		seed, err, seed, strings.Join(lines, "\n"))
	if again == nil || again.Error() != err.Error() {
		t.Errorf("seed %d: the second run differs: %v", seed, again)
	}
}

// wrong is the panic value of a world that finds an error.
type wrong struct{ error }

// runSeed runs one world from beginning to end, with a trace if the coverage is not needed.
func runSeed(seed uint64, mem *slab, seen *coverage) (trace string, err error) {
	w := newWorld(seed, mem)
	record := seen == nil
	defer mem.reset()
	defer func() {
		if record {
			trace = w.trace.String()
		}
		switch r := recover().(type) {
		case nil:
		case wrong:
			err = fmt.Errorf("%w\n%s", r.error, w.describe())
		case error:
			var buf [4096]byte
			err = fmt.Errorf("panic: %w\n%s\n%s", r, w.describe(), buf[:runtime.Stack(buf[:], false)])
		default:
			var buf [4096]byte
			err = fmt.Errorf("panic: %v\n%s\n%s", r, w.describe(), buf[:runtime.Stack(buf[:], false)])
		}
		err = errors.Join(err, w.close(err == nil))
	}()
	if record {
		w.trace = w.sim.Record()
	}
	w.build()
	w.run()
	w.check()
	if seen != nil {
		seen.add(w)
	}
	return "", nil
}

// slab is memory that worlds reuse.
type slab struct {
	mem  []byte
	used int
}

// alloc returns n zero bytes that start at a multiple of 64.
func (s *slab) alloc(n int) []byte {
	n = (n + 63) &^ 63
	if s.used+n > len(s.mem) {
		s.mem, s.used = make([]byte, max(2*len(s.mem), n, 4<<20)), 0
	}
	b := s.mem[s.used : s.used+n : s.used+n]
	s.used += n
	return b
}

func (s *slab) reset() {
	clear(s.mem[:s.used])
	s.used = 0
}
