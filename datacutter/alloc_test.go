package datacutter

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// ends returns the two ends of a stream over a pipe, without a run.
func ends(unitSize int) (*Output, *Input) {
	a, b := newPipe()
	s := &Stream{Name: "a", UnitSize: unitSize}
	out := &Output{stream: s, to: make([]Instance, 1), links: []*link{{ctx: context.Background(), conn: a, frames: newFrameReader(a, 0)}}}
	out.startReplies(nil, false, false)
	in := &Input{stream: s, links: []*link{{ctx: context.Background(), conn: b, frames: newFrameReader(b, unitSize)}}}
	in.startReaders(nil)
	in.startWork(0)
	return out, in
}

func TestUnitsAllocateNothing(t *testing.T) {
	out, in := ends(1024)
	unit := make([]byte, 1024)
	allocs := testing.AllocsPerRun(1000, func() {
		if err := out.Send(unit); err != nil {
			panic(err)
		}
		if _, err := in.Next(); err != nil {
			panic(err)
		}
	})
	require.Zero(t, allocs)
}

// BenchmarkStream measures a unit from filter to filter: over one connection, from three copies to one, and
// from one to three demand-driven copies.
func BenchmarkStream(b *testing.B) {
	for _, unitSize := range []int{64, 1024, 65536} {
		for _, c := range []struct {
			name     string
			from, to int
			policy   Policy
		}{{"1-1", 1, 1, RoundRobin}, {"3-1", 3, 1, RoundRobin}, {"1-3 demand", 1, 3, DemandDriven}} {
			for name, network := range networks(b) {
				b.Run(fmt.Sprintf("%s/%s/%d", c.name, name, unitSize), func(b *testing.B) {
					unit := make([]byte, unitSize)
					read := always(func(_ context.Context, w *Work) error {
						for i := w.Copy; i < b.N; i += w.Copies {
							if err := w.Out("a").Send(unit); err != nil {
								return err
							}
						}
						return nil
					})
					view := always(func(_ context.Context, w *Work) error { return w.In("a").skipRest() })
					job := pair(read, view)
					job.Layout[0].Copies, job.Layout[1].Copies = c.from, c.to
					job.Group.Streams[0].UnitSize, job.Group.Streams[0].Policy = unitSize, c.policy
					b.SetBytes(int64(unitSize))
					b.ReportAllocs()
					_, err := Run(context.Background(), network, job)
					require.NoError(b, err)
				})
			}
		}
	}
}
