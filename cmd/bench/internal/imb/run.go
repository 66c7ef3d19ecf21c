package imb

import (
	"time"

	"github.com/softrnic/softrnic/mpi"
)

// A Row is the result for one size.
type Row struct {
	Benchmark   string
	Ranks       int     // number of participating ranks
	Size        int     // bytes
	Repetitions int     // 0: skipped for lack of memory
	Min, Max    float64 // us for each repetition, at the fastest and the slowest rank
	Avg         float64
	Bandwidth   float64 // MB/s, 10^6 bytes, of the slowest rank; 0 for collectives
	Rate        float64 // messages per second, of Uniband and Biband
	Needed      int     // required memory of a rank in bytes
}

// Run runs benchmarks. It is collective: all ranks call it with the same arguments, and rank 0
// receives the rows.
func Run(c *mpi.Comm, list []Benchmark, o Options) (rows []Row, err error) {
	if err := o.Check(list, c.Size()); err != nil {
		return nil, err
	}
	t := table{}
	if c.Rank() == 0 {
		t.w = o.Out
	}
	if err := t.writeBanner(list, o); err != nil {
		return nil, err
	}
	for _, b := range list {
		groups, err := b.groupSizes(o.MinRanks, c.Size())
		if err != nil {
			return rows, err
		}
		for _, ranks := range groups {
			if err := t.writeHeader(b, ranks, c.Size()); err != nil {
				return rows, err
			}
			done, err := runGroup(c, b, o, ranks, t)
			rows = append(rows, done...)
			if err != nil {
				return rows, err
			}
		}
	}
	return rows, t.writeEnd()
}

// runGroup runs a benchmark on the first ranks, while the others wait.
func runGroup(world *mpi.Comm, b Benchmark, o Options, ranks int, t table) (rows []Row, err error) {
	color := mpi.Undefined
	if world.Rank() < ranks {
		color = 0
	}
	c, err := world.Split(color, world.Rank())
	if err != nil {
		return nil, err
	}
	if c != nil {
		rows, err = runSizes(c, b, o, t)
		if e := c.Free(); err == nil {
			err = e
		}
		if err != nil {
			return rows, err
		}
	}
	return rows, world.Barrier()
}

func runSizes(c *mpi.Comm, b Benchmark, o Options, t table) (rows []Row, err error) {
	for _, size := range o.sizesFor(b) {
		row := Row{Benchmark: b.Name, Ranks: c.Size(), Size: size, Needed: b.sendSize(size, c.Size()) + b.recvSize(size, c.Size())}
		if row.Needed <= o.Memory {
			if err := measureRow(newKernel(c, b, o, size), &row); err != nil {
				return rows, err
			}
		}
		if c.Rank() > 0 {
			continue
		}
		rows = append(rows, row)
		if err := t.writeRow(b, row); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// measureRow measures one size and sets the figures of row at rank 0.
func measureRow(k *kernel, row *Row) error {
	n, err := k.chooseRepetitions()
	if err != nil {
		return err
	}
	d, err := k.runRepetitions(n)
	if err != nil {
		return err
	}
	mine := float64(d.Nanoseconds()) / 1e3 / float64(n)
	if k.b.halfTime {
		mine /= 2
	}
	row.Repetitions = n
	for _, f := range []struct {
		to *float64
		op mpi.Op
	}{{&row.Min, mpi.Min}, {&row.Max, mpi.Max}, {&row.Avg, mpi.Sum}} {
		if err := k.c.Reduce(mpi.Value(&mine), mpi.Value(f.to), f.op, 0); err != nil {
			return err
		}
	}
	row.Avg /= float64(k.ranks)
	switch {
	case row.Max <= 0: // at all ranks but 0
	case k.b.class == rate:
		row.Rate = k.b.volume * float64(k.o.Window) * float64(k.ranks/2) / row.Max * 1e6
		row.Bandwidth = row.Rate * float64(k.size) / 1e6
	case k.b.volume > 0:
		row.Bandwidth = k.b.volume * float64(k.size) / row.Max
	}
	return nil
}

// chooseRepetitions runs the warm-up and returns the number of repetitions that fit into the
// time limit. The result is the same at all ranks.
func (k *kernel) chooseRepetitions() (int, error) {
	n := k.o.Repetitions
	if k.size > 0 {
		n = max(1, min(n, k.o.Volume/k.size))
	}
	if k.o.NoWarmUp {
		return n, nil
	}
	limit := func(n int, budget, each time.Duration) int {
		if k.o.Time == 0 {
			return n
		}
		return int(max(1, min(time.Duration(n), budget/max(1, each))))
	}
	first, err := k.runSlowest(1) // establishes connections
	if err != nil {
		return 0, err
	}
	warm := limit(max(n/10, min(10, n)), k.o.Time/10, first)
	d, err := k.runSlowest(warm)
	return limit(n, k.o.Time, d/time.Duration(warm)), err
}

// runSlowest runs n repetitions and returns the time of the slowest rank.
func (k *kernel) runSlowest(n int) (time.Duration, error) {
	d, err := k.runRepetitions(n)
	if err != nil {
		return 0, err
	}
	err = k.c.Allreduce(mpi.InPlace, mpi.Value(&d), mpi.Max)
	return d, err
}

// runRepetitions runs n repetitions after two barriers.
func (k *kernel) runRepetitions(n int) (time.Duration, error) {
	for range 2 {
		if err := k.c.Barrier(); err != nil {
			return 0, err
		}
	}
	return k.b.execute(k, n)
}
