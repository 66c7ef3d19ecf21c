// Package is is IS of the NAS Parallel Benchmarks, "integer sort". In each of ten
// iterations, all ranks determine the global rank of each of their keys. Keys are sorted
// into buckets, and the sizes of the buckets are summed. Each rank receives consecutive
// buckets with about its share of the keys, and counts them. The performance depends on
// Alltoallv with large blocks.
//
//	report, err := is.Run(world.Comm, nas.S) // on 1, 2, 4, 8, 16, ... ranks
package is

import (
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/nas"
	"github.com/softrnic/softrnic/mpi"
)

// Run runs the benchmark. It is collective: all ranks call it, their number is a power of two,
// and all receive the report.
func Run(c *mpi.Comm, class nas.Class) (nas.Report, error) {
	p, ok := problems[class]
	if !ok {
		return nas.Report{}, fmt.Errorf("class %v: %w", class, nas.ErrClass)
	}
	if err := p.checkRanks(c.Size()); err != nil {
		return nas.Report{}, err
	}
	s := newSorter(c, p)
	if err := s.rankOnce(1); err != nil { // an unmeasured iteration, to establish all connections
		return nas.Report{}, err
	}
	s.passed = 0
	if err := c.Barrier(); err != nil {
		return nas.Report{}, err
	}
	start := time.Now()
	for i := 1; i <= iterations; i++ {
		if err := s.rankOnce(i); err != nil {
			return nas.Report{}, err
		}
	}
	slowest, err := nas.MaxTime(c, time.Since(start))
	if err != nil {
		return nas.Report{}, err
	}
	sorted, err := s.verifySorted()
	if err != nil {
		return nas.Report{}, err
	}
	results := []int{s.passed, sorted}
	err = c.Allreduce(mpi.InPlace, mpi.Of(results), mpi.Sum)
	return nas.Report{
		Benchmark: "IS", Class: class, Size: 1 << p.keys, Iterations: iterations, Processes: c.Size(), Time: slowest,
		Operations: float64(iterations) * float64(int(1)<<p.keys), Operation: "keys ranked",
		Checks: []nas.Check{
			{Name: "ranks of test keys", Got: float64(results[0]), Want: tests * iterations},
			{Name: "keys in order", Got: float64(results[1]), Want: float64(int(1) << p.keys)},
		},
	}, err
}

// verifySorted sorts the received keys and returns their number, or 0 if they are not in order
// or not larger than those of lower ranks.
func (s *sorter) verifySorted() (int, error) {
	keys := make([]int32, len(s.got))
	for _, k := range s.got {
		i := &s.count[k-s.least]
		*i--
		keys[*i] = k
	}
	first, last := int32(1<<s.p.values), int32(-1) // for no keys
	if len(keys) > 0 {
		first, last = keys[0], keys[len(keys)-1]
	}
	before := int32(-1) // largest key of all lower ranks
	if err := s.c.Exscan(mpi.Value(&last), mpi.Value(&before), mpi.Max); err != nil {
		return 0, err
	}
	if before > first {
		return 0, nil
	}
	for i := 1; i < len(keys); i++ {
		if keys[i-1] > keys[i] {
			return 0, nil
		}
	}
	return len(keys), nil
}
