package mpibench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
	"github.com/softrnic/softrnic/mpi"
)

// A Halo is a way to exchange the outermost points of a strip with both neighbors in a ring, as
// examples/mpi/heat does along one dimension.
type Halo string

// Ways to exchange halos.
const (
	HaloSendrecv   Halo = "sendrecv"   // two calls of Sendrecv
	HaloPersistent Halo = "persistent" // persistent sends and receives
	HaloChannel    Halo = "channel"    // partitioned sends and receives, of one partition
)

// A haloRound requests exchanges of halos, or the memory of a rank with them.
type haloRound struct {
	Halo    Halo
	Size    int
	Rounds  int
	Compute sdpbench.Work // between two exchanges
	Memory  bool
}

// HaloMemory is the memory of a rank that exchanges halos.
type HaloMemory struct {
	Rank     float64 // heap bytes in use
	Neighbor float64 // of them, those of the requests of one neighbor
}

// HaloRounds returns rounds of exchanges of size bytes in each direction, with computation behind
// each. Its time is included. Persistent requests and channels start the next receive before it.
func (j *Job) HaloRounds(h Halo, size, rounds int, compute sdpbench.Work, into *measure.Latency) measure.Round {
	return measure.MedianRounds(into, func(ctx context.Context) (*measure.Latency, error) {
		r, err := j.callRanks(ctx, request{Halo: &haloRound{Halo: h, Size: size, Rounds: rounds, Compute: compute}})
		return r.Halo, err
	})
}

// HaloMemory returns the average over the ranks.
func (j *Job) HaloMemory(ctx context.Context, h Halo, size int) (mean HaloMemory, err error) {
	ranks, err := proc.Call[request, reply](ctx, j.Group, request{Halo: &haloRound{Halo: h, Size: size, Memory: true}})
	if err != nil {
		return mean, fmt.Errorf("%s: %w", j.Transport, err)
	}
	for _, r := range ranks {
		mean.Rank += r.HaloMemory.Rank / float64(len(ranks))
		mean.Neighbor += r.HaloMemory.Neighbor / float64(len(ranks))
	}
	return mean, nil
}

// haloExchange is a strip's halo: what it sends to the next and the previous rank, and what comes
// from the previous and the next one.
type haloExchange struct {
	w         rank
	halo      Halo
	to, from  [2]int
	out, in   [2][]byte
	receives  []*mpi.Request
	sends     []*mpi.Request
	exchanges int
	early     bool // the receives of the next exchange are started
}

func (w rank) newHaloExchange(h Halo, size int) (*haloExchange, error) {
	next, previous := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
	x := &haloExchange{w: w, halo: h, to: [2]int{next, previous}, from: [2]int{previous, next}}
	for i := range x.out {
		x.out[i], x.in[i] = make([]byte, size), make([]byte, size)
		var errs [2]error
		var send, recv *mpi.Request
		switch h {
		case HaloSendrecv:
			continue
		case HaloPersistent:
			recv, errs[0] = w.RecvInit(mpi.Bytes(x.in[i]), x.from[i], i)
			send, errs[1] = w.SendInit(mpi.Bytes(x.out[i]), x.to[i], i)
		case HaloChannel:
			recv, errs[0] = w.PrecvInit(mpi.Bytes(x.in[i]), 1, x.from[i], i)
			send, errs[1] = w.PsendInit(mpi.Bytes(x.out[i]), 1, x.to[i], i)
		default:
			return nil, fmt.Errorf("mpibench: unknown exchange of halos %q", h)
		}
		if err := errors.Join(errs[:]...); err != nil {
			return nil, err
		}
		x.receives, x.sends = append(x.receives, recv), append(x.sends, send)
	}
	return x, nil
}

// exchange exchanges the halo once and verifies it. Then it starts the receives of the next exchange,
// unless it is the last one.
func (x *haloExchange) exchange(last bool) error {
	x.exchanges++
	for i := range x.out {
		x.out[i][0], x.out[i][len(x.out[i])-1] = byte(i), byte(x.exchanges)
	}
	if err := x.transfer(); err != nil {
		return err
	}
	for i, in := range x.in {
		if in[len(in)-1] != byte(x.exchanges) || len(in) > 1 && in[0] != byte(i) {
			return fmt.Errorf("wrong data: exchange %d, direction %d: 0x%02x, stamp 0x%02x", x.exchanges, i, in[0], in[len(in)-1])
		}
	}
	x.early = !last
	if last {
		return nil
	}
	return mpi.StartAll(x.receives...)
}

func (x *haloExchange) transfer() error {
	if x.halo == HaloSendrecv {
		for i := range x.out {
			if _, err := x.w.Sendrecv(mpi.Bytes(x.out[i]), x.to[i], i, mpi.Bytes(x.in[i]), x.from[i], i); err != nil {
				return err
			}
		}
		return nil
	}
	var err error
	if !x.early {
		err = mpi.StartAll(x.receives...)
	}
	err = errors.Join(err, mpi.StartAll(x.sends...))
	if x.halo == HaloChannel {
		for _, s := range x.sends {
			err = errors.Join(err, s.Pready(0))
		}
	}
	for _, list := range [][]*mpi.Request{x.receives, x.sends} {
		_, waited := mpi.WaitAll(list...)
		err = errors.Join(err, waited)
	}
	return err
}

// free frees the requests.
func (x *haloExchange) free() (err error) {
	for _, r := range append(x.receives, x.sends...) {
		err = errors.Join(err, r.Free())
	}
	return err
}

func (w rank) runHalo(r *haloRound) (out reply, err error) {
	if r.Memory {
		out.HaloMemory, err = w.measureHaloMemory(r)
		return out, err
	}
	x, err := w.newHaloExchange(r.Halo, r.Size)
	if err != nil {
		return out, err
	}
	out.Halo = measure.NewLatency()
	all := r.Rounds + r.Rounds/10 + 1
	for i := range all {
		start := time.Now()
		if err := x.exchange(i == all-1); err != nil {
			return out, err
		}
		r.Compute.Execute()
		if i > r.Rounds/10 {
			out.Halo.Record(time.Since(start))
		}
	}
	return out, x.free()
}

// measureHaloMemory measures the growth of the heap with many exchanges that are in use.
func (w rank) measureHaloMemory(r *haloRound) (*HaloMemory, error) {
	const exchanges = 200
	list := make([]*haloExchange, exchanges+1)
	var first float64
	for i := range list {
		x, err := w.newHaloExchange(r.Halo, r.Size)
		if err == nil {
			err = x.exchange(true)
		}
		if err != nil {
			return nil, err
		}
		if list[i] = x; i == 0 {
			first = heapBytes()
		}
	}
	out := &HaloMemory{Rank: first, Neighbor: (heapBytes()-first)/exchanges/2 - 2*float64(r.Size)}
	for _, x := range list {
		if err := x.free(); err != nil {
			return nil, err
		}
	}
	return out, w.Barrier()
}
