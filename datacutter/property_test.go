package datacutter

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// For random graphs, layouts, policies and unit sizes, each sink gets the units that the model
// predicts for each work.
func TestAnyLayoutGivesTheSame(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := drawGraph(rt)
		var got sync.Map // sink and work: *bin
		job := Job{Group: g.group(&got), Layout: drawLayout(rt, g)}
		for range rapid.IntRange(0, 4).Draw(rt, "works") {
			job.Works = append(job.Works, nil)
		}
		network := NewMemory()
		if rapid.IntRange(0, 9).Draw(rt, "tcp") == 0 {
			network = NewTCP("")
		}
		_, err := Run(guard(t), network, job)
		require.NoError(rt, err)

		groups := 0
		for _, p := range job.Layout {
			groups = max(groups, p.Group+1)
		}
		works := len(job.Works)
		if works == 0 {
			works = groups
		}
		for f := range g.filters {
			if len(g.streamsOf(f)) > 0 {
				continue
			}
			for w := range works {
				var want []string
				for u := range g.units {
					want = append(want, g.model(f, w, u)...)
				}
				slices.Sort(want)
				b, ok := got.Load([2]int{f, w})
				require.True(rt, ok)
				require.Equal(rt, want, b.(*bin).contents(), "filter %d, work %d", f, w)
			}
		}
	})
}

// graph has streams from lower to higher filters only. Every filter with inputs passes each unit on
// to all its outputs with its number appended; the others generate units.
type graph struct {
	filters int
	streams [][2]int
	units   int
	policy  []Policy
	window  []int
}

func drawGraph(rt *rapid.T) (g graph) {
	g.filters = rapid.IntRange(1, 5).Draw(rt, "filters")
	g.units = rapid.IntRange(0, 40).Draw(rt, "units")
	for from := range g.filters {
		for to := from + 1; to < g.filters; to++ {
			if rapid.IntRange(0, 2).Draw(rt, "stream") > 0 {
				g.streams = append(g.streams, [2]int{from, to})
				g.policy = append(g.policy, Policy(rapid.IntRange(0, 2).Draw(rt, "policy")))
				g.window = append(g.window, rapid.IntRange(0, 3).Draw(rt, "window"))
			}
		}
	}
	return g
}

func drawLayout(rt *rapid.T, g graph) (l Layout) {
	for group := range rapid.IntRange(1, 3).Draw(rt, "groups") {
		for f := range g.filters {
			for range rapid.IntRange(1, 2).Draw(rt, "placements") {
				l = append(l, Placement{Group: group, Filter: strconv.Itoa(f), Host: rapid.SampledFrom([]string{"x", "y", "z"}).Draw(rt, "host"),
					Copies: rapid.IntRange(0, 2).Draw(rt, "copies")})
			}
		}
	}
	return rapid.Permutation(l).Draw(rt, "layout")
}

// streamsOf returns the streams of a filter.
func (g graph) streamsOf(from int) (list []int) {
	for s, e := range g.streams {
		if e[0] == from {
			list = append(list, s)
		}
	}
	return list
}

// model returns the units that a filter receives of a work: one for each path.
func (g graph) model(f, work, unit int) (all []string) {
	source := true
	for s, e := range g.streams {
		if e[1] == f {
			source = false
			for _, text := range g.model(e[0], work, unit) {
				all = append(all, text+","+strconv.Itoa(s))
			}
		}
	}
	if source {
		return []string{strconv.Itoa(f) + " " + strconv.Itoa(work) + " " + strconv.Itoa(unit)}
	}
	return all
}

func (g graph) group(got *sync.Map) (group Group) {
	for f := range g.filters {
		group.Filters = append(group.Filters, FilterDef{strconv.Itoa(f), always(func(_ context.Context, w *Work) error {
			b, _ := got.LoadOrStore([2]int{f, w.Number}, new(bin))
			return g.process(w, f, b.(*bin))
		})})
	}
	for s, e := range g.streams {
		group.Streams = append(group.Streams, Stream{Name: strconv.Itoa(s), From: strconv.Itoa(e[0]), To: strconv.Itoa(e[1]),
			UnitSize: 40 + 30*s, Policy: g.policy[s], Window: g.window[s]})
	}
	return group
}

// process reads all inputs concurrently, as a filter must if its inputs share a producer.
func (g graph) process(w *Work, f int, b *bin) error {
	var mu sync.Mutex
	pass := func(text string) error {
		mu.Lock()
		defer mu.Unlock()
		outs := g.streamsOf(f)
		for _, s := range outs {
			key := binary.LittleEndian.Uint64(append([]byte(text), make([]byte, 8)...))
			if err := w.Out(strconv.Itoa(s)).SendKey(key, []byte(text)); err != nil {
				return err
			}
		}
		if len(outs) == 0 {
			b.add(Instance{}, []byte(text))
		}
		return nil
	}
	var wg sync.WaitGroup
	errs := make([]error, len(g.streams))
	source := true
	for s, e := range g.streams {
		if e[1] != f {
			continue
		}
		source = false
		wg.Go(func() {
			for unit, err := range w.In(strconv.Itoa(s)).Units() {
				if err == nil {
					err = pass(string(unit) + "," + strconv.Itoa(s))
				}
				if err != nil {
					errs[s] = err
					return
				}
			}
		})
	}
	for u := w.Copy; source && u < g.units; u += w.Copies {
		if err := pass(strconv.Itoa(f) + " " + strconv.Itoa(w.Number) + " " + strconv.Itoa(u)); err != nil {
			return err
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// A filter that leaves some inputs unread does not block other filters.
func TestLeftUnread(t *testing.T) {
	g := chain(count(2000, "a"), forward("a", "b"), always(func(_ context.Context, w *Work) error {
		if w.Number == 1 {
			return nil
		}
		_, err := w.In("b").Next()
		return err
	}))
	// A second stream of the producer to the consumer.
	g.Filters[0].New = always(func(_ context.Context, w *Work) error {
		for i := range 2000 {
			if err := errors.Join(w.Out("a").Send(make([]byte, i%64)), w.Out("c").Send(make([]byte, 64))); err != nil {
				return err
			}
		}
		return nil
	})
	g.Streams = append(g.Streams, Stream{Name: "c", From: "read", To: "view", UnitSize: 64})
	for name, network := range networks(t) {
		t.Run(name, func(t *testing.T) {
			report, err := Run(guard(t), network, Job{Group: g, Layout: Spread(g, 1, "x", "y", "z"), Works: make([][]byte, 3)})
			require.NoError(t, err)
			require.EqualValues(t, 12000, report.Instances[2].In.Units)
		})
	}
}
