package verbsbench

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/verbs"
)

func init() {
	proc.Register(worker, roleRoot, func(ctx context.Context, w *proc.Worker) error {
		o, err := proc.Args[GatherOptions](w)
		if err != nil {
			return err
		}
		e, err := openEnd(w, gatherConfig)
		if err != nil {
			return err
		}
		defer e.dev.Close()
		r, err := openRoot(ctx, e, o)
		if err != nil {
			return err
		}
		return proc.Serve(ctx, w, r.run)
	})
}

// root takes the messages of all senders. Senders are counted from 0 here.
type root struct {
	*end
	o       GatherOptions
	cq      verbs.CQ
	srq     verbs.SRQ
	lines   []*line
	ofData  map[uint32]int // sender by queue pair
	ofLine  map[uint32]int
	slots   verbs.MR // Copy: where messages come to
	places  verbs.MR // where they belong
	asking  []int    // ZeroCopy: senders whose turn is to come
	turn    bool     // ... somebody has it
	arrived int      // messages, this time
	n       uint64   // times so far
	wcs     [16]verbs.WC
}

func openRoot(ctx context.Context, e *end, o GatherOptions) (r *root, err error) {
	r = &root{end: e, o: o, ofData: map[uint32]int{}, ofLine: map[uint32]int{}}
	if r.cq, err = e.dev.CreateCQ(o.Senders * 4 * lineDepth); err != nil {
		return nil, err
	}
	if r.srq, err = e.pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: o.Senders, MaxSGE: 1}); err != nil {
		return nil, err
	}
	for _, mr := range []*verbs.MR{&r.slots, &r.places} {
		if *mr, err = e.pd.RegMR(make([]byte, o.Senders*o.Size), verbs.AccessLocalWrite); err != nil {
			return nil, err
		}
	}
	for i := 0; i < o.Senders && o.Scheme == Copy; i++ {
		if err := r.receive(r.slots, i); err != nil {
			return nil, err
		}
	}
	return r, r.connect(ctx)
}

func (r *root) connect(ctx context.Context) error {
	mine := gatherSheet{make([]verbs.Endpoint, r.o.Senders), make([]verbs.Endpoint, r.o.Senders)}
	data := make([]verbs.QP, r.o.Senders)
	r.lines = make([]*line, r.o.Senders)
	var err error
	for i := range data {
		data[i], mine.Data[i], err = r.createQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: r.cq, RecvCQ: r.cq, SRQ: r.srq})
		if err != nil {
			return err
		}
		if r.lines[i], mine.Lines[i], err = r.newLine(r.cq); err != nil {
			return err
		}
		r.ofData[data[i].Num()], r.ofLine[r.lines[i].qp.Num()] = i, i
	}
	sheets, err := proc.Exchange(ctx, r.Worker, mine)
	if err != nil {
		return err
	}
	for i := range data {
		theirs := sheets[1+i]
		if err := verbs.Connect(data[i], mine.Data[i], theirs.Data[0], verbs.ConnectOptions{Timeout: ackTimeout}); err != nil {
			return err
		}
		if err := verbs.Connect(r.lines[i].qp, mine.Lines[i], theirs.Lines[0], verbs.ConnectOptions{Timeout: ackTimeout}); err != nil {
			return err
		}
	}
	return proc.Barrier(ctx, r.Worker)
}

// receive posts a receive into the i-th part of a region.
func (r *root) receive(mr verbs.MR, i int) error {
	_, err := r.srq.PostRecv([]verbs.RecvWR{{WRID: uint64(i), SGList: []verbs.SGE{mr.SGE(i*r.o.Size, r.o.Size)}}})
	return err
}

func (r *root) run(ctx context.Context, iters int) (*measure.Latency, error) {
	all := measure.NewLatency()
	for i := range gatherWarmup + iters {
		r.n++
		clear(r.places.Bytes())
		took, err := r.once()
		if err != nil {
			return nil, err
		}
		if err := r.check(); err != nil {
			return nil, err
		}
		if i >= gatherWarmup {
			all.Record(took)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return all, proc.Barrier(ctx, r.Worker)
}

// once gathers one message of every sender. It blocks while nothing comes:
// there are more processes than processors.
func (r *root) once() (time.Duration, error) {
	start := time.Now()
	for _, l := range r.lines {
		if err := l.say(); err != nil { // begin
			return 0, err
		}
	}
	for r.arrived = 0; r.arrived < r.o.Senders; {
		n, err := r.cq.PollWait(context.Background(), r.wcs[:])
		if err != nil {
			return 0, err
		}
		for i := range r.wcs[:n] {
			if err := r.take(&r.wcs[i]); err != nil {
				return 0, err
			}
		}
	}
	return time.Since(start), nil
}

// take handles one completion.
func (r *root) take(wc *verbs.WC) error {
	if wc.Err() != nil {
		return wc.Err()
	}
	if !wc.Opcode.IsRecv() {
		return nil // a word has left
	}
	if sender, ok := r.ofLine[wc.QPN]; ok { // RTS
		r.asking = append(r.asking, sender)
		if err := r.lines[sender].heard(); err != nil {
			return err
		}
		return r.allow()
	}
	r.arrived++
	if r.o.Scheme == ZeroCopy {
		r.turn = false
		return r.allow()
	}
	slot, place := int(wc.WRID)*r.o.Size, r.ofData[wc.QPN]*r.o.Size
	copy(r.places.Bytes()[place:], r.slots.Bytes()[slot:slot+int(wc.ByteLen)])
	return r.receive(r.slots, int(wc.WRID))
}

// allow gives the next sender that asks its turn, if nobody has it.
func (r *root) allow() error {
	if r.turn || len(r.asking) == 0 {
		return nil
	}
	sender := r.asking[0]
	r.asking = append(r.asking[:0], r.asking[1:]...)
	r.turn = true
	if err := r.receive(r.places, sender); err != nil {
		return err
	}
	return r.lines[sender].say() // RTR
}

// check compares what is in each place with what its sender sent.
func (r *root) check() error {
	want := r.pattern(1 + r.o.Senders + r.o.Size)
	for i := range r.o.Senders {
		message := r.places.Bytes()[i*r.o.Size : (i+1)*r.o.Size]
		if stamp := binary.LittleEndian.Uint64(message); stamp != r.n {
			return fmt.Errorf("wrong answer: time %d brought sender %d's message of time %d", r.n, i, stamp)
		}
		rank := 1 + i
		if err := want[rank+stampLen:].Check(message[stampLen:], false); err != nil {
			return fmt.Errorf("sender %d: %w", i, err)
		}
	}
	return nil
}
