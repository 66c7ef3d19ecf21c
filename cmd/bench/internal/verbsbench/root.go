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
	proc.RegisterArgs(worker, roleRoot, func(ctx context.Context, w *proc.Worker, o GatherOptions) error {
		e, err := openSide(w, gatherConfig)
		if err != nil {
			return err
		}
		defer e.dev.Close()
		r, err := openRoot(ctx, e, o)
		if err != nil {
			return err
		}
		return proc.Serve(ctx, w, r.runRounds)
	})
}

// A root receives the messages of all senders. Senders are numbered from 0 here.
type root struct {
	*side
	o                 GatherOptions
	cq                verbs.CQ
	srq               verbs.SRQ
	controls          []*controlQP
	senderByDataQP    map[uint32]int // sender by queue pair number
	senderByControlQP map[uint32]int
	recvMR            verbs.MR // Copy: memory of the receives
	resultMR          verbs.MR // destination of the messages
	pendingRTS        []int    // ZeroCopy: senders waiting for a grant
	granted           bool     // ZeroCopy: a sender has the grant
	arrived           int      // messages received in this gather
	n                 uint64   // number of the current gather
	wcs               [16]verbs.WC
}

func openRoot(ctx context.Context, e *side, o GatherOptions) (r *root, err error) {
	r = &root{side: e, o: o, senderByDataQP: map[uint32]int{}, senderByControlQP: map[uint32]int{}}
	if r.cq, err = e.dev.CreateCQ(o.Senders * 4 * controlDepth); err != nil {
		return nil, err
	}
	if r.srq, err = e.pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: o.Senders, MaxSGE: 1}); err != nil {
		return nil, err
	}
	for _, mr := range []*verbs.MR{&r.recvMR, &r.resultMR} {
		if *mr, err = e.pd.RegMR(make([]byte, o.Senders*o.Size), verbs.AccessLocalWrite); err != nil {
			return nil, err
		}
	}
	for i := 0; i < o.Senders && o.Scheme == Copy; i++ {
		if err := r.postRecv(r.recvMR, i); err != nil {
			return nil, err
		}
	}
	return r, r.connectSenders(ctx)
}

func (r *root) connectSenders(ctx context.Context) error {
	mine := gatherConnInfo{make([]verbs.Endpoint, r.o.Senders), make([]verbs.Endpoint, r.o.Senders)}
	data := make([]verbs.QP, r.o.Senders)
	r.controls = make([]*controlQP, r.o.Senders)
	var err error
	for i := range data {
		data[i], mine.Data[i], err = r.createQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: r.cq, RecvCQ: r.cq, SRQ: r.srq})
		if err != nil {
			return err
		}
		if r.controls[i], mine.Control[i], err = r.newControlQP(r.cq); err != nil {
			return err
		}
		r.senderByDataQP[data[i].Num()], r.senderByControlQP[r.controls[i].qp.Num()] = i, i
	}
	infos, err := proc.Exchange(ctx, r.Worker, mine)
	if err != nil {
		return err
	}
	for i := range data {
		theirs := infos[1+i]
		if err := verbs.Connect(data[i], mine.Data[i], theirs.Data[0], verbs.ConnectOptions{AckTimeout: ackTimeout}); err != nil {
			return err
		}
		if err := verbs.Connect(r.controls[i].qp, mine.Control[i], theirs.Control[0], verbs.ConnectOptions{AckTimeout: ackTimeout}); err != nil {
			return err
		}
	}
	return proc.Barrier(ctx, r.Worker)
}

// postRecv posts a receive into part i of a region.
func (r *root) postRecv(mr verbs.MR, i int) error {
	_, err := r.srq.PostRecv([]verbs.RecvWR{{WRID: uint64(i), SGList: []verbs.SGE{mr.SGE(i*r.o.Size, r.o.Size)}}})
	return err
}

func (r *root) runRounds(ctx context.Context, iters int) (*measure.Latency, error) {
	all := measure.NewLatency()
	for i := range gatherWarmup + iters {
		r.n++
		clear(r.resultMR.Bytes())
		took, err := r.gatherOnce()
		if err != nil {
			return nil, err
		}
		if err := r.verifyMessages(); err != nil {
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

// gatherOnce gathers one message of every sender. It blocks between completions, because there
// are more processes than processors.
func (r *root) gatherOnce() (time.Duration, error) {
	start := time.Now()
	for _, l := range r.controls {
		if err := l.sendEmpty(); err != nil { // start
			return 0, err
		}
	}
	for r.arrived = 0; r.arrived < r.o.Senders; {
		n, err := r.cq.PollWait(context.Background(), r.wcs[:])
		if err != nil {
			return 0, err
		}
		for i := range r.wcs[:n] {
			if err := r.handleCompletion(&r.wcs[i]); err != nil {
				return 0, err
			}
		}
	}
	return time.Since(start), nil
}

// handleCompletion handles one completion.
func (r *root) handleCompletion(wc *verbs.WC) error {
	if wc.Err() != nil {
		return wc.Err()
	}
	if !wc.Opcode.IsRecv() {
		return nil // a control message was sent
	}
	if sender, ok := r.senderByControlQP[wc.QPN]; ok { // RTS
		r.pendingRTS = append(r.pendingRTS, sender)
		if err := r.controls[sender].repostRecv(); err != nil {
			return err
		}
		return r.grantNext()
	}
	r.arrived++
	if r.o.Scheme == ZeroCopy {
		r.granted = false
		return r.grantNext()
	}
	slot, place := int(wc.WRID)*r.o.Size, r.senderByDataQP[wc.QPN]*r.o.Size
	copy(r.resultMR.Bytes()[place:], r.recvMR.Bytes()[slot:slot+int(wc.ByteLen)])
	return r.postRecv(r.recvMR, int(wc.WRID))
}

// grantNext grants the receive to the next waiting sender, unless another sender has it.
func (r *root) grantNext() error {
	if r.granted || len(r.pendingRTS) == 0 {
		return nil
	}
	sender := r.pendingRTS[0]
	r.pendingRTS = append(r.pendingRTS[:0], r.pendingRTS[1:]...)
	r.granted = true
	if err := r.postRecv(r.resultMR, sender); err != nil {
		return err
	}
	return r.controls[sender].sendEmpty() // RTR
}

// verifyMessages compares each received message with the sent one.
func (r *root) verifyMessages() error {
	want := r.payloadPattern(1 + r.o.Senders + r.o.Size)
	for i := range r.o.Senders {
		message := r.resultMR.Bytes()[i*r.o.Size : (i+1)*r.o.Size]
		if stamp := binary.LittleEndian.Uint64(message); stamp != r.n {
			return fmt.Errorf("wrong data: gather %d: message of sender %d belongs to gather %d", r.n, i, stamp)
		}
		rank := 1 + i
		if err := want[rank+stampLen:].Check(message[stampLen:], false); err != nil {
			return fmt.Errorf("sender %d: %w", i, err)
		}
	}
	return nil
}
