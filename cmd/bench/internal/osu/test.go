package osu

import (
	"errors"
	"fmt"
	"strings"
)

// Test is one of the benchmarks.
type Test struct {
	Name  string // without osu_
	Title string // of the output: "Latency"

	pairs   bool // of ranks, as many as there are; without it there are two ranks
	measure func(*runner, round) (Row, error)
	coll    *collective // of which measure is the same for all
	win     *oneSided   // likewise
	shape   shape
}

// shape is what a row shows.
type shape uint8

const (
	showLatency shape = iota
	showBandwidth
	showRate // bandwidth, and messages
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

// Tests lists the benchmarks: 7 point to point, 15 collectives, and 9 one-sided.
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

// Errors that Find and Run wrap.
var (
	ErrTest    = errors.New("osu: no such test")
	ErrRanks   = errors.New("osu: not a number of ranks that the test can run on")
	ErrOptions = errors.New("osu: options")
	ErrInvalid = errors.New("osu: data is not what was sent")
)

// Find returns the test of a name, with osu_ or without.
func Find(name string) (Test, error) {
	var names []string
	for _, t := range Tests() {
		if t.Name == strings.TrimPrefix(name, "osu_") {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return Test{}, fmt.Errorf("%w: %q; there are %s", ErrTest, name, strings.Join(names, ", "))
}

// IsCollective reports whether the test is of a collective.
func (t Test) IsCollective() bool { return t.coll != nil }

// IsOneSided reports whether the test is of operations on windows.
func (t Test) IsOneSided() bool { return t.win != nil }

// checkRanks says whether the test can run on so many ranks.
func (t Test) checkRanks(ranks int) error {
	switch {
	case t.coll == nil && !t.pairs && ranks != 2:
		return fmt.Errorf("%w: osu_%s wants 2, not %d", ErrRanks, t.Name, ranks)
	case ranks < 2:
		return fmt.Errorf("%w: osu_%s wants at least 2", ErrRanks, t.Name)
	}
	return nil
}
