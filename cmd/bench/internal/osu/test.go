package osu

import (
	"errors"
	"fmt"
	"strings"

	"github.com/softrnic/softrnic/internal/spelling"
)

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
