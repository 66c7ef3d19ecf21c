package acpbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/cmd/bench/internal/procpmi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

const (
	worker   = "acpbench"
	roleRank = "rank"
)

// request asks all ranks for one round: one of them is set.
type request struct {
	Ping    *ping     `json:",omitempty"`
	Stream  *stream   `json:",omitempty"`
	Copy    *copies   `json:",omitempty"`
	Connect *connects `json:",omitempty"`
}

// reply is what a rank measured.
type reply struct {
	Figure  float64          `json:",omitempty"`
	Latency *measure.Latency `json:",omitempty"`
}

func init() {
	proc.Register(worker, roleRank, func(ctx context.Context, w *proc.Worker) error {
		m, err := procpmi.New(ctx, w)
		if err != nil {
			return err
		}
		p, err := acp.Init(func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }, acp.Options{Manager: m})
		if err != nil {
			return err
		}
		return proc.Serve(ctx, w, (&rank{Process: p, w: w}).serve) // ends with the process, and is not finalized
	})
}

// rank is one of the processes.
type rank struct {
	*acp.Process
	w      *proc.Worker
	pairs  map[Channel]*pair
	memory *acp.Region
	all    []acp.GA // the memory of all ranks
}

func (r *rank) serve(ctx context.Context, q request) (out reply, err error) {
	switch {
	case q.Ping != nil:
		out.Latency, err = r.ping(ctx, *q.Ping)
	case q.Stream != nil:
		out.Figure, err = r.stream(ctx, *q.Stream)
	case q.Copy != nil:
		out.Figure, err = r.copies(ctx, *q.Copy)
	case q.Connect != nil:
		out.Latency, err = r.connects(ctx, *q.Connect)
	default:
		err = errors.New("acpbench: an empty request")
	}
	if err == nil {
		err = proc.Barrier(ctx, r.w) // who has nothing to do sleeps, as in the baseline, and leaves all to its adapter
	}
	return out, err
}

// pair is a channel from here to the other one of ranks 0 and 1, and one back.
type pair struct{ to, from *acp.Channel }

// pair returns the channels of a kind. Both ranks make them in the same order.
func (r *rank) pair(c Channel) (*pair, error) {
	if p := r.pairs[c]; p != nil {
		return p, nil
	}
	if r.pairs == nil {
		r.pairs = map[Channel]*pair{}
	}
	p := &pair{}
	for from := range 2 {
		slots := cmp.Or(c.RecvSlots, 8)
		if from == r.Rank() {
			slots = cmp.Or(c.SendSlots, 2)
		}
		ch, err := r.NewChannel(from, 1-from, c.options(slots))
		if err != nil {
			return nil, err
		}
		if from == r.Rank() {
			p.to = ch
		} else {
			p.from = ch
		}
	}
	r.pairs[c] = p
	return p, nil
}

// pattern is n bytes of message i.
func pattern(n, i int) []byte {
	b := make([]byte, n)
	for k := range b {
		b[k] = byte(k*131 + k>>8 + i)
	}
	return b
}

// look compares a message with what it should be.
func look(got []byte, n int, want []byte) error {
	if n != len(want) {
		return fmt.Errorf("wrong answer: a message of %d bytes, not %d", n, len(want))
	}
	for i, b := range got[:n] {
		if b != want[i] {
			return fmt.Errorf("wrong answer: byte %d of %d is 0x%02x, not 0x%02x", i, n, b, want[i])
		}
	}
	return nil
}
