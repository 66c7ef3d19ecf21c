package verbsbench

import (
	"context"
	"encoding/binary"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

const (
	gatherWarmup = 10 // times before those that count
	stampLen     = 8  // of each message: the number of the time, behind it the pattern from the sender's rank on
)

// gatherSheet is what root and senders tell each other: by sender in the
// root's, one each in a sender's.
type gatherSheet struct{ Data, Lines []verbs.Endpoint }

func init() {
	proc.Register(worker, roleSender, func(ctx context.Context, w *proc.Worker) error {
		o, err := proc.Args[GatherOptions](w)
		if err != nil {
			return err
		}
		e, err := openEnd(w, gatherConfig)
		if err != nil {
			return err
		}
		defer e.dev.Close()
		s, err := openSender(ctx, e, o)
		if err != nil {
			return err
		}
		return proc.Serve(ctx, w, s.run)
	})
}

// gatherConfig is that of every device in a gathering.
var gatherConfig = Config{MTU: 4096, Spin: rnic.DefaultSpin}

// sender is one of those who send to the root.
type sender struct {
	*end
	o    GatherOptions
	cq   verbs.CQ
	data verbs.QP
	line *line
	mr   verbs.MR
	n    uint64 // times so far
	wr   [1]verbs.SendWR
	wcs  [16]verbs.WC

	words   int  // of the root, not yet obeyed
	leaving bool // the last message has not completed
}

func openSender(ctx context.Context, e *end, o GatherOptions) (s *sender, err error) {
	s = &sender{end: e, o: o}
	if s.cq, err = e.dev.CreateCQ(4 * lineDepth); err != nil {
		return nil, err
	}
	if s.mr, err = e.pd.RegMR(make([]byte, o.Size), verbs.AccessLocalWrite); err != nil {
		return nil, err
	}
	copy(s.mr.Bytes(), e.pattern(e.Rank + o.Size)[e.Rank:])
	s.wr[0] = verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{s.mr.SGE(0, o.Size)}}
	mine := gatherSheet{make([]verbs.Endpoint, 1), make([]verbs.Endpoint, 1)}
	s.data, mine.Data[0], err = e.createQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: s.cq, RecvCQ: s.cq,
		Cap: verbs.QPCap{MaxSendWR: 4, MaxSendSGE: 1}})
	if err != nil {
		return nil, err
	}
	if s.line, mine.Lines[0], err = e.newLine(s.cq); err != nil {
		return nil, err
	}
	sheets, err := proc.Exchange(ctx, e.Worker, mine)
	if err != nil {
		return nil, err
	}
	root, me := sheets[0], e.Rank-1
	if err := verbs.Connect(s.data, mine.Data[0], root.Data[me], verbs.ConnectOptions{Timeout: ackTimeout}); err != nil {
		return nil, err
	}
	if err := verbs.Connect(s.line.qp, mine.Lines[0], root.Lines[me], verbs.ConnectOptions{Timeout: ackTimeout}); err != nil {
		return nil, err
	}
	return s, proc.Barrier(ctx, e.Worker)
}

func (s *sender) run(ctx context.Context, iters int) (*measure.Latency, error) {
	for range gatherWarmup + iters {
		if err := s.once(); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return measure.NewLatency(), proc.Barrier(ctx, s.Worker)
}

// once sends one message when the root says so.
func (s *sender) once() error {
	s.n++
	if err := s.await(); err != nil {
		return err
	}
	if s.o.Scheme == ZeroCopy {
		if err := s.line.say(); err != nil { // RTS
			return err
		}
		if err := s.await(); err != nil { // RTR
			return err
		}
	}
	binary.LittleEndian.PutUint64(s.mr.Bytes(), s.n)
	_, err := s.data.PostSend(s.wr[:])
	s.leaving = true
	return err
}

// await waits for a word of the root, and until the last message has left. It
// blocks: there are more processes than processors. Nothing cancels it, and
// the parent ends a process that hangs.
func (s *sender) await() error {
	for s.words == 0 || s.leaving {
		n, err := s.cq.PollWait(context.Background(), s.wcs[:])
		if err != nil {
			return err
		}
		for i := range s.wcs[:n] {
			wc := &s.wcs[i]
			switch {
			case wc.Err() != nil:
				return wc.Err()
			case wc.Opcode.IsRecv():
				s.words++
				err = s.line.heard()
			case wc.QPN == s.data.Num():
				s.leaving = false
			}
			if err != nil {
				return err
			}
		}
	}
	s.words--
	return nil
}
