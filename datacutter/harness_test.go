package datacutter

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience exceeds the duration of any test, also on a machine that pauses.
const patience = 5 * time.Minute

// guard returns the context of a test that must not hang.
func guard(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// networks are the networks that tests run over.
func networks(t testing.TB) map[string]Network {
	all := map[string]Network{"memory": NewMemory(), "tcp": NewTCP("")}
	for _, design := range designs {
		all["sdp-"+design.String()] = newSDP(t, design)
	}
	return all
}

// always returns a New function that returns the same filter for every instance.
func always(f FilterFunc) func(Instance) (Filter, error) {
	return func(Instance) (Filter, error) { return f, nil }
}

// forward sends every unit of its input on.
func forward(in, out string) func(Instance) (Filter, error) {
	return always(func(_ context.Context, w *Work) error {
		for unit, err := range w.In(in).Units() {
			if err != nil {
				return err
			}
			if err := w.Out(out).Send(unit); err != nil {
				return err
			}
		}
		return nil
	})
}

// count sends n units, numbered in text, distributed over its copies.
func count(n int, out string) func(Instance) (Filter, error) {
	return always(func(_ context.Context, w *Work) error {
		for i := w.Copy; i < n; i += w.Copies {
			if err := w.Out(out).SendKey(uint64(i), fmt.Appendf(nil, "work %d unit %d", w.Number, i)); err != nil {
				return err
			}
		}
		return nil
	})
}

// bin collects units as text, by the receiving instance.
type bin struct {
	mu  sync.Mutex
	got map[Instance][]string
}

func (b *bin) add(i Instance, unit []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.got == nil {
		b.got = make(map[Instance][]string)
	}
	b.got[i] = append(b.got[i], string(unit))
}

// sink puts its input into the bin.
func (b *bin) sink(in string) func(Instance) (Filter, error) {
	return always(func(_ context.Context, w *Work) error {
		for unit, err := range w.In(in).Units() {
			if err != nil {
				return err
			}
			b.add(w.Instance, unit)
		}
		return nil
	})
}

// contents returns the contents of the bin, sorted.
func (b *bin) contents() (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, units := range b.got {
		all = append(all, units...)
	}
	slices.Sort(all)
	return all
}

// chain returns a group of three filters, read, pass and view, with streams a and b.
func chain(read, pass, view func(Instance) (Filter, error)) Group {
	return Group{
		Filters: []FilterDef{{"read", read}, {"pass", pass}, {"view", view}},
		Streams: []Stream{{Name: "a", From: "read", To: "pass", UnitSize: 64}, {Name: "b", From: "pass", To: "view", UnitSize: 64}},
	}
}

// numbered returns the units that count sends.
func numbered(n int, works ...int) (all []string) {
	for _, w := range works {
		for i := range n {
			all = append(all, fmt.Sprintf("work %d unit %d", w, i))
		}
	}
	slices.Sort(all)
	return all
}

func TestChain(t *testing.T) {
	for name, network := range networks(t) {
		t.Run(name, func(t *testing.T) {
			var b bin
			g := chain(count(100, "a"), forward("a", "b"), b.sink("b"))
			report, err := Run(guard(t), network, Job{Group: g, Layout: Spread(g, 1, "x", "y", "z"), Works: [][]byte{nil, nil, nil}})
			require.NoError(t, err)
			require.Equal(t, numbered(100, 0, 1, 2), b.contents())
			require.Len(t, report.Instances, 3)
			require.Equal(t, "pass[0] of group 0 on host y", report.Instances[0].String())
			require.EqualValues(t, 300, report.Instances[0].In.Units)
			require.Equal(t, report.Instances[0].In, report.Instances[0].Out)
			require.Positive(t, report.Elapsed())
		})
	}
}
