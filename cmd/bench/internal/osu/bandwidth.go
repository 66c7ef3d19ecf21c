package osu

import (
	"time"

	"github.com/softrnic/softrnic/mpi"
)

// measureBandwidth measures windows of messages: in one direction with an acknowledgement for
// each window, or in both directions.
func (r *runner) measureBandwidth(x round) (Row, error) {
	both := r.t.Name == "bibw"
	ack := make([]byte, 1)
	requests := make([]*mpi.Request, 0, 2*r.o.Window)
	moved := float64(x.size) * float64(r.o.Window) * float64(r.pairs) / 1e6 // MB in each round
	if both {
		moved *= 2
	}
	errs := 0
	if err := r.c.Barrier(); err != nil {
		return Row{}, err
	}
	for i := range x.Warmup + x.Iterations {
		r.fillBuffers(x.size, i)
		if r.t.pairs || r.o.Validate {
			if err := r.c.Barrier(); err != nil {
				return Row{}, err
			}
		}
		start := time.Now()
		if err := r.exchangeWindow(requests, x.size, ack, both); err != nil {
			return Row{}, err
		}
		if i >= x.Warmup {
			x.addSample(time.Since(start))
		}
		if both || !r.first {
			errs += r.countErrors(x.size, i)
		}
	}
	return r.bandwidthRow(x, errs, moved)
}

// fillBuffers writes data to validate.
func (r *runner) fillBuffers(size, i int) {
	if !r.o.Validate {
		return
	}
	for k := range r.send {
		r.o.Type.fillElements(r.send[k][:size], i+k, r.c.Rank())
		clear(r.recv[k][:size])
	}
}

// countErrors returns the number of wrong elements.
func (r *runner) countErrors(size, i int) (n int) {
	if !r.o.Validate || r.partner == mpi.ProcNull {
		return 0
	}
	for k := range r.recv {
		n += r.o.Type.countWrong(r.recv[k][:size], i+k, r.partner)
	}
	return n
}

// exchangeWindow runs one round of a rank. It reuses the memory of requests.
func (r *runner) exchangeWindow(requests []*mpi.Request, size int, ack []byte, both bool) error {
	if both || !r.first {
		for k := range r.o.Window {
			q, err := r.c.Irecv(r.o.Type.bufferOf(r.recv[k%len(r.recv)][:size]), r.partner, tagData)
			if err != nil {
				return err
			}
			requests = append(requests, q)
		}
	}
	if both || r.first {
		for k := range r.o.Window {
			q, err := r.c.Isend(r.o.Type.bufferOf(r.send[k%len(r.send)][:size]), r.partner, tagData)
			if err != nil {
				return err
			}
			requests = append(requests, q)
		}
	}
	if _, err := mpi.WaitAll(requests...); err != nil || both {
		return err
	}
	if r.first {
		_, err := r.c.Recv(mpi.Of(ack), r.partner, tagAck)
		return err
	}
	return r.c.Send(mpi.Of(ack), r.partner, tagAck)
}

// bandwidthRow returns the row with the average time of the senders. moved is the amount of
// data in a round, in MB.
func (r *runner) bandwidthRow(x round, errs int, moved float64) (Row, error) {
	errs, err := r.sumErrors(errs)
	if err != nil {
		return Row{}, err
	}
	total := 0.0 // seconds
	if r.first {
		total = x.total.Seconds() / float64(r.pairs)
	}
	if r.pairs > 1 {
		if err := r.c.Allreduce(mpi.InPlace, mpi.Value(&total), mpi.Sum); err != nil {
			return Row{}, err
		}
	}
	row := Row{Size: x.size, Iterations: x.Iterations, Errors: errs}
	if total > 0 {
		row.Bandwidth = moved * float64(x.Iterations) / total
		row.Rate = float64(r.o.Window) * float64(r.pairs) * float64(x.Iterations) / total
	}
	for i, t := range x.samples {
		x.samples[i] = moved / (t / 1e6)
	}
	row.Tail = percentilesOf(x.samples, r.o.Tail)
	return row, nil
}
