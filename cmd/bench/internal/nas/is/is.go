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

const (
	seed       = 314159265
	iterations = 10
	tests      = 5 // number of keys whose ranks are published
)

// A problem is a class: 2^keys keys less than 2^values, in 2^buckets buckets.
type problem struct {
	keys, values, buckets int
	tests                 [tests]test
}

// A test is a key, given by its index, with a published rank. In iteration i the rank is rank +
// slope*i + offset, because each iteration changes two keys.
type test struct{ index, rank, slope, offset int }

func (t test) wantRank(iteration int) int { return t.rank + t.slope*iteration + t.offset }

var problems = map[nas.Class]problem{
	nas.S: {16, 11, 9, [tests]test{
		{48427, 0, 1, 0}, {17148, 18, 1, 0}, {23627, 346, 1, 0}, {62548, 64917, -1, 0}, {4431, 65463, -1, 0}}},
	nas.W: {20, 16, 10, [tests]test{
		{357773, 1249, 1, -2}, {934767, 11698, 1, -2}, {875723, 1039987, -1, 0}, {898999, 1043896, -1, 0}, {404505, 1048018, -1, 0}}},
	nas.A: {23, 19, 10, [tests]test{
		{2112377, 104, 1, -1}, {662041, 17523, 1, -1}, {5336171, 123928, 1, -1}, {3642833, 8288932, -1, 1}, {4250760, 8388264, -1, 1}}},
	nas.B: {25, 21, 10, [tests]test{
		{41869, 33422937, -1, 0}, {812306, 10244, 1, 0}, {5102857, 59149, 1, 0}, {18232239, 33135281, -1, 0}, {26860214, 99, 1, 0}}},
	nas.C: {27, 23, 10, [tests]test{
		{44172927, 61147, 1, 0}, {72999161, 882988, 1, 0}, {74326391, 266290, 1, 0}, {129606274, 133997595, -1, 0}, {21736814, 133525895, -1, 0}}},
}

// checkRanks returns an error if the problem cannot be distributed to the given number of
// ranks: the keys that iterations change must all be on rank 0, and each rank needs a bucket.
func (p problem) checkRanks(ranks int) error {
	if err := nas.CheckPowerOfTwo(ranks); err != nil {
		return err
	}
	if most := 1 << min(p.buckets, p.keys-5); ranks > most {
		return fmt.Errorf("%w: %d, want at most %d for this class", nas.ErrRanks, ranks, most)
	}
	return nil
}

// generateKeys generates a rank's keys. Each is the scaled mean of four random numbers. Sums of
// four 46-bit numbers are exact, also in NPB's floating-point arithmetic.
func (p problem) generateKeys(keys []int32, rank int) {
	x := nas.Random(seed).Skip(uint64(4 * rank * len(keys)))
	shift := 46 - (p.values - 2)
	for i := range keys {
		var sum nas.Random
		for range 4 {
			x = x.Next()
			sum += x
		}
		keys[i] = int32(sum >> shift)
	}
}
