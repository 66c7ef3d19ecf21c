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
	{Name: "latency", Title: "Latency", measure: (*runner).latency},
	{Name: "bw", Title: "Bandwidth", measure: (*runner).bandwidth, shape: showBandwidth},
	{Name: "bibw", Title: "Bi-Directional Bandwidth", measure: (*runner).bandwidth, shape: showBandwidth},
	{Name: "mbw_mr", Title: "Multiple Bandwidth / Message Rate", measure: (*runner).bandwidth, shape: showRate, pairs: true},
	{Name: "multi_lat", Title: "Multi Latency", measure: (*runner).latency, pairs: true},
	{Name: "latency_mt", Title: "Multi-threaded Latency", measure: (*runner).threads},
	{Name: "latency_mp", Title: "Multi-process Latency", measure: (*runner).processes},
}

// Tests lists the benchmarks: 7 point to point, 15 collectives, and 9 one-sided.
func Tests() []Test {
	list := append([]Test(nil), pointToPoint...)
	for i := range collectives {
		c := &collectives[i]
		list = append(list, Test{Name: c.name, Title: c.title + " Latency", measure: (*runner).collective, coll: c})
	}
	for i := range oneSideds {
		w := &oneSideds[i]
		t := Test{Name: w.name, Title: w.title, measure: (*runner).oneSided, win: w}
		if w.windows {
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

// Collective reports whether the test is of a collective.
func (t Test) Collective() bool { return t.coll != nil }

// OneSided reports whether the test is of operations on windows.
func (t Test) OneSided() bool { return t.win != nil }

// fits says whether the test can run on so many ranks.
func (t Test) fits(ranks int) error {
	switch {
	case t.coll == nil && !t.pairs && ranks != 2:
		return fmt.Errorf("%w: osu_%s wants 2, not %d", ErrRanks, t.Name, ranks)
	case ranks < 2:
		return fmt.Errorf("%w: osu_%s wants at least 2", ErrRanks, t.Name)
	}
	return nil
}
