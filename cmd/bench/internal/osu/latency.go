package osu

import (
	"errors"
	"math"
	"sync"
	"time"

	"github.com/softrnic/softrnic/mpi"
)

// Tags of messages. If there are several threads, the tag is the number of the round.
const (
	tagPing = 1
	tagPong = 2
	tagData = 100
	tagAck  = 101
)

// measureLatency measures half of a round trip, averaged over pairs.
func (r *runner) measureLatency(x round) (Row, error) {
	send, recv := r.o.Type.bufferOf(r.send[0][:x.size]), r.o.Type.bufferOf(r.recv[0][:x.size])
	errs := 0
	if err := r.c.Barrier(); err != nil {
		return Row{}, err
	}
	for i := range x.Warmup + x.Iterations {
		if r.o.Validate {
			r.o.Type.fillElements(r.send[0][:x.size], i, r.c.Rank())
			clear(r.recv[0][:x.size])
		}
		if r.t.pairs || r.o.Validate {
			if err := r.c.Barrier(); err != nil {
				return Row{}, err
			}
		}
		start := time.Now()
		if err := r.pingPong(send, recv, tagPing, tagPing); err != nil {
			return Row{}, err
		}
		if i >= x.Warmup {
			x.addSample(time.Since(start) / 2)
		}
		if r.o.Validate && r.partner != mpi.ProcNull {
			errs += r.o.Type.countWrong(r.recv[0][:x.size], i, r.partner)
		}
	}
	return r.latencyRow(x, errs)
}

// pingPong runs one round trip, on either side.
func (r *runner) pingPong(send, recv mpi.Buffer, ping, pong int) error {
	if r.first {
		if err := r.c.Send(send, r.partner, ping); err != nil {
			return err
		}
		_, err := r.c.Recv(recv, r.partner, pong)
		return err
	}
	if _, err := r.c.Recv(recv, r.partner, ping); err != nil {
		return err
	}
	return r.c.Send(send, r.partner, pong)
}

// latencyRow returns the average over pairs, for rank 0.
func (r *runner) latencyRow(x round, errs int) (Row, error) {
	errs, err := r.sumErrors(errs)
	if err != nil {
		return Row{}, err
	}
	mine := toMicros(x.total) / float64(x.Iterations)
	row := Row{Size: x.size, Latency: mine, Min: mine, Max: mine, Iterations: x.Iterations, Errors: errs, Tail: percentilesOf(x.samples, r.o.Tail)}
	if r.pairs == 1 {
		return row, nil
	}
	if !r.first {
		mine = 0
	}
	if err := r.c.Reduce(mpi.Value(&mine), mpi.Value(&row.Latency), mpi.Sum, 0); err != nil {
		return Row{}, err
	}
	row.Latency /= float64(r.pairs)
	least := mine
	if !r.first {
		least = math.Inf(1) // receivers do not count
	}
	return row, r.reduceMinMax(least, mine, &row)
}

// reduceMinMax reduces the minimum and the maximum over all ranks to rank 0.
func (r *runner) reduceMinMax(least, most float64, row *Row) error {
	if err := r.c.Reduce(mpi.Value(&least), mpi.Value(&row.Min), mpi.Min, 0); err != nil {
		return err
	}
	return r.c.Reduce(mpi.Value(&most), mpi.Value(&row.Max), mpi.Max, 0)
}

// measureLatencyMP measures the latency while both ranks have additional processes, which
// sleep.
func (r *runner) measureLatencyMP(x round) (Row, error) {
	n := r.o.Senders
	if !r.first {
		n = r.o.Receivers
	}
	awake := make(chan struct{})
	var children sync.WaitGroup
	for range n - 1 {
		children.Go(func() { <-awake })
	}
	defer children.Wait()
	defer close(awake)
	return r.measureLatency(x)
}

// measureLatencyMT measures the latency between goroutines of rank 0 and of rank 1. A single
// goroutine of rank 0 receives its reply from any of rank 1.
func (r *runner) measureLatencyMT(x round) (Row, error) {
	if err := r.c.Barrier(); err != nil {
		return Row{}, err
	}
	n := r.o.Senders
	if !r.first {
		n = r.o.Receivers
	}
	clocks, wrongs, errs := make([]stopwatch, n), make([]int, n), make([]error, n)
	var all sync.WaitGroup
	for thread := range n {
		if x.samples != nil {
			clocks[thread].samples = make([]float64, 0, x.Iterations)
		}
		all.Go(func() { wrongs[thread], errs[thread] = r.runThread(x, thread, n, &clocks[thread]) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return Row{}, err
	}
	wrong := 0
	for i := range clocks {
		x.total += clocks[i].total
		x.samples = append(x.samples, clocks[i].samples...)
		wrong += wrongs[i]
	}
	return r.latencyRow(x, wrong)
}

// runThread runs every n-th round, from round thread on.
func (r *runner) runThread(x round, thread, n int, w *stopwatch) (wrong int, err error) {
	out, in := alignedBytes(x.size), alignedBytes(x.size)
	send, recv := r.o.Type.bufferOf(out), r.o.Type.bufferOf(in)
	ping, pong := tagPing, tagPong
	for i := thread; i < x.Warmup+x.Iterations; i += n {
		if r.o.Senders > 1 {
			ping, pong = i, i
		}
		if r.o.Validate {
			r.o.Type.fillElements(out, i, r.c.Rank())
			clear(in)
		}
		start := time.Now()
		if err := r.pingPong(send, recv, ping, pong); err != nil {
			return wrong, err
		}
		if i >= x.Warmup {
			w.addSample(time.Since(start) / 2)
		}
		if r.o.Validate {
			wrong += r.o.Type.countWrong(in, i, r.partner)
		}
	}
	return wrong, nil
}
