package datacutter_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log"
	"strings"
	"sync/atomic"

	"github.com/softrnic/softrnic/datacutter"
)

// Two instances of a group count the words of texts. In each, two copies of the counting filter receive lines
// on demand.
func Example() {
	var total atomic.Int64
	read := func(ctx context.Context, w *datacutter.Work) error {
		for line := range strings.Lines(string(w.Query)) {
			if err := w.Out("lines").Send([]byte(line)); err != nil {
				return err
			}
		}
		return nil
	}
	count := func(ctx context.Context, w *datacutter.Work) error {
		n := 0
		for line, err := range w.In("lines").Units() {
			if err != nil {
				return err
			}
			n += len(bytes.Fields(line))
		}
		return w.Out("counts").Send(fmt.Append(nil, n))
	}
	sum := func(ctx context.Context, w *datacutter.Work) error {
		for unit, err := range w.In("counts").Units() {
			var n int64
			if err == nil {
				_, err = fmt.Sscan(string(unit), &n)
			}
			if err != nil {
				return err
			}
			total.Add(n)
		}
		return nil
	}

	job := datacutter.Job{
		Group: datacutter.Group{
			Filters: []datacutter.FilterDef{{Name: "read", New: filter(read)}, {Name: "count", New: filter(count)}, {Name: "sum", New: filter(sum)}},
			Streams: []datacutter.Stream{
				{Name: "lines", From: "read", To: "count", UnitSize: 1024, Policy: datacutter.DemandDriven},
				{Name: "counts", From: "count", To: "sum", UnitSize: 16},
			},
		},
		Layout: datacutter.Layout{
			{Group: 0, Filter: "read", Host: "a"}, {Group: 0, Filter: "count", Host: "b", Copies: 2}, {Group: 0, Filter: "sum", Host: "a"},
			{Group: 1, Filter: "read", Host: "b"}, {Group: 1, Filter: "count", Host: "a", Copies: 2}, {Group: 1, Filter: "sum", Host: "b"},
		},
		Works: [][]byte{[]byte("one two\nthree\n"), []byte("four five\n"), []byte("six\nseven eight nine\n")},
	}
	report, err := datacutter.Run(context.Background(), datacutter.NewTCP(""), job)
	if err != nil {
		log.Fatal(err) // names the filter
	}
	for _, i := range report.Instances {
		if i.Filter == "read" {
			fmt.Println(i, "sent", i.Out.Units, "lines")
		}
	}
	fmt.Println(total.Load(), "words")
	// Output:
	// read[0] of group 0 on host a sent 4 lines
	// read[0] of group 1 on host b sent 1 lines
	// 9 words
}

// counter counts the lines of one work and of all works.
type counter struct{ units int }

func (c *counter) Process(ctx context.Context, w *datacutter.Work) error {
	size := 0
	for unit, err := range w.In("lines").Units() { // until the work ends
		if err != nil {
			return err
		}
		c.units++
		size += len(unit)
	}
	fmt.Printf("work %d: %d bytes\n", w.Number, size)
	return nil
}

// Close is called after the last work.
func (c *counter) Close() error {
	fmt.Println(c.units, "units in all")
	return nil
}

// A source and a filter that counts its units. The report contains the runtime's counts.
func ExampleFilter() {
	read := func(ctx context.Context, w *datacutter.Work) error {
		lines := bufio.NewScanner(bytes.NewReader(w.Query)) // a program opens the file of that name
		for lines.Scan() {
			if err := w.Out("lines").Send(lines.Bytes()); err != nil {
				return err
			}
		}
		return lines.Err() // nil ends the work
	}
	job := datacutter.Job{
		Group: datacutter.Group{
			Filters: []datacutter.FilterDef{
				{Name: "read", New: filter(read)},
				{Name: "count", New: func(datacutter.Instance) (datacutter.Filter, error) { return new(counter), nil }},
			},
			Streams: []datacutter.Stream{{Name: "lines", From: "read", To: "count", UnitSize: 1024}},
		},
		Layout: datacutter.Layout{{Filter: "read", Host: "a"}, {Filter: "count", Host: "b"}},
		Works:  [][]byte{[]byte("one\ntwo\n"), nil, []byte("three\n")},
	}
	report, err := datacutter.Run(context.Background(), datacutter.NewMemory(), job)
	if err != nil {
		log.Fatal(err)
	}
	for _, i := range report.Instances {
		fmt.Println(i, "took", i.In.Units, "units of", i.In.Bytes, "bytes and sent", i.Out.Units)
	}
	// Output:
	// work 0: 6 bytes
	// work 1: 0 bytes
	// work 2: 5 bytes
	// 3 units in all
	// count[0] of group 0 on host b took 3 units of 11 bytes and sent 0
	// read[0] of group 0 on host a took 0 units of 0 bytes and sent 3
}

func filter(f datacutter.FilterFunc) func(datacutter.Instance) (datacutter.Filter, error) {
	return func(datacutter.Instance) (datacutter.Filter, error) { return f, nil }
}

// Hosts in separate processes: each listens, learns the addresses of all, and runs its part of the same job.
func ExampleNode_Run() {
	greet := func(ctx context.Context, w *datacutter.Work) error {
		return w.Out("words").Send(fmt.Appendf(nil, "hello from host %s", w.Host))
	}
	show := func(ctx context.Context, w *datacutter.Work) error {
		for unit, err := range w.In("words").Units() {
			if err != nil {
				return err
			}
			fmt.Printf("%s\n", unit)
		}
		return nil
	}
	job := datacutter.Job{
		Group: datacutter.Group{
			Filters: []datacutter.FilterDef{{Name: "greet", New: filter(greet)}, {Name: "show", New: filter(show)}},
			Streams: []datacutter.Stream{{Name: "words", From: "greet", To: "show", UnitSize: 64}},
		},
		Layout: datacutter.Layout{{Filter: "greet", Host: "a"}, {Filter: "show", Host: "b"}},
	}

	ctx, network := context.Background(), datacutter.NewTCP("")
	a, err := datacutter.Listen(ctx, network)
	check(err)
	b, err := datacutter.Listen(ctx, network)
	check(err)
	addrs := map[string]string{"a": a.Addr(), "b": b.Addr()} // exchanged between the processes

	done := make(chan error)
	go func() {
		_, err := a.Run(ctx, job, "a", addrs)
		done <- err
	}()
	_, err = b.Run(ctx, job, "b", addrs)
	check(err)
	check(<-done)
	// Output: hello from host a
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
