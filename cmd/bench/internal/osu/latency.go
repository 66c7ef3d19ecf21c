package osu

import (
	"errors"
	"math"
	"sync"
	"time"

	"github.com/softrnic/softrnic/mpi"
)

// Tags of messages. Threads have the number of the round, if there are several.
const (
	tagPing = 1
	tagPong = 2
	tagData = 100
	tagAck  = 101
)

// measureLatency is half of the time from a message to its answer, on average over pairs.
func (r *runner) measureLatency(x round) (Row, error) {
	send, recv := r.o.Type.bufferOf(r.send[0][:x.size]), r.o.Type.bufferOf(r.recv[0][:x.size])
	wrong := 0
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
			wrong += r.o.Type.countWrong(r.recv[0][:x.size], i, r.partner)
		}
	}
	return r.latencyRow(x, wrong)
}

// pingPong is a message and its answer, on either side.
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

// latencyRow is the average over pairs, for rank 0.
func (r *runner) latencyRow(x round, wrong int) (Row, error) {
	wrong, err := r.sumErrors(wrong)
	if err != nil {
		return Row{}, err
	}
	mine := toMicros(x.total) / float64(x.Iterations)
	row := Row{Size: x.size, Latency: mine, Min: mine, Max: mine, Iterations: x.Iterations, Errors: wrong, Tail: percentilesOf(x.samples, r.o.Tail)}
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
		least = math.Inf(1) // not of those that answer
	}
	return row, r.reduceMinMax(least, mine, &row)
}

// reduceMinMax are those of all ranks, for rank 0.
func (r *runner) reduceMinMax(least, most float64, row *Row) error {
	if err := r.c.Reduce(mpi.Value(&least), mpi.Value(&row.Min), mpi.Min, 0); err != nil {
		return err
	}
	return r.c.Reduce(mpi.Value(&most), mpi.Value(&row.Max), mpi.Max, 0)
}

// measureLatencyMP is latency while there are more processes on both sides, which sleep.
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

// measureLatencyMT is latency between some goroutines of rank 0 and some of rank 1. A single
// one of rank 0 is answered by whoever of rank 1 gets the message.
func (r *runner) measureLatencyMT(x round) (Row, error) {
	if err := r.c.Barrier(); err != nil {
		return Row{}, err
	}
	n := r.o.Senders
	if !r.first {
		n = r.o.Receivers
	}
	watches, wrongs, errs := make([]stopwatch, n), make([]int, n), make([]error, n)
	var all sync.WaitGroup
	for thread := range n {
		if x.samples != nil {
			watches[thread].samples = make([]float64, 0, x.Iterations)
		}
		all.Go(func() { wrongs[thread], errs[thread] = r.runThread(x, thread, n, &watches[thread]) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return Row{}, err
	}
	wrong := 0
	for i := range watches {
		x.total += watches[i].total
		x.samples = append(x.samples, watches[i].samples...)
		wrong += wrongs[i]
	}
	return r.latencyRow(x, wrong)
}

// runThread is one of n: each n-th round is its.
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
