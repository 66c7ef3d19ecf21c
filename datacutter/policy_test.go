package datacutter

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// fanOut returns a chain with three copies of pass and a policy for both streams.
func fanOut(p Policy, window int, read, pass, view func(Instance) (Filter, error)) Job {
	g := chain(read, pass, view)
	for i := range g.Streams {
		g.Streams[i].Policy, g.Streams[i].Window = p, window
	}
	return Job{Group: g, Layout: Layout{
		{Filter: "read", Host: "x"}, {Filter: "pass", Host: "x"}, {Filter: "pass", Host: "y", Copies: 2}, {Filter: "view", Host: "z"},
	}}
}

// keyed is pass with keys: those of its input are the last digit.
func keyed(b *bin) func(Instance) (Filter, error) {
	return always(func(_ context.Context, w *Work) error {
		for unit, err := range w.In("a").Units() {
			if err != nil {
				return err
			}
			b.add(w.Instance, unit)
			if err := w.Out("b").SendKey(0, unit); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestPolicies(t *testing.T) {
	for _, policy := range []Policy{RoundRobin, ByKey, DemandDriven} {
		for name, network := range networks(t) {
			t.Run(policy.String()+" "+name, func(t *testing.T) {
				var passed, seen bin
				job := fanOut(policy, 0, count(90, "a"), keyed(&passed), seen.sink("b"))
				job.Works = make([][]byte, 2)
				_, err := Run(guard(t), network, job)
				require.NoError(t, err)
				require.Equal(t, numbered(90, 0, 1), seen.contents())
				require.Equal(t, numbered(90, 0, 1), passed.contents())
				if policy == DemandDriven {
					return
				}
				// Unit i of each work has key i, and is the i-th in turn.
				for copy, host := range []string{"x", "y", "y"} {
					var want []string
					for i := range 180 {
						if i%3 == copy {
							want = append(want, fmt.Sprintf("work %d unit %d", i/90, i%90))
						}
					}
					require.Equal(t, want, passed.got[Instance{Filter: "pass", Copy: copy, Copies: 3, Host: host}])
				}
			})
		}
	}
}

// A blocked copy gets at most Window units; the others process the rest.
func TestDemandDrivenSparesTheSlow(t *testing.T) {
	const units, window = 60, 2
	for name, network := range networks(t) {
		t.Run(name, func(t *testing.T) {
			var rest sync.WaitGroup
			rest.Add(units - window)
			pass := always(func(ctx context.Context, w *Work) error {
				for unit, err := range w.In("a").Units() {
					if err != nil {
						return err
					}
					if w.Copy == 1 {
						rest.Wait() // until the others have all remaining units
					} else {
						rest.Done()
					}
					if err := w.Out("b").Send(unit); err != nil {
						return err
					}
				}
				return nil
			})
			var seen bin
			report, err := Run(guard(t), network, fanOut(DemandDriven, window, count(units, "a"), pass, seen.sink("b")))
			require.NoError(t, err)
			require.Equal(t, numbered(units, 0), seen.contents())
			slow := slices.IndexFunc(report.Instances, func(i InstanceReport) bool { return i.Filter == "pass" && i.Copy == 1 })
			require.EqualValues(t, window, report.Instances[slow].In.Units)
		})
	}
}

func TestByKeyWantsKeys(t *testing.T) {
	job := fanOut(ByKey, 0, count(9, "a"), forward("a", "b"), new(bin).sink("b"))
	_, err := Run(guard(t), NewMemory(), job)
	require.ErrorIs(t, err, ErrJob)
	require.ErrorContains(t, err, "use SendKey")
}
