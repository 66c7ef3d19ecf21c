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
	gatherWarmup = 10 // gathers that are not measured
	stampLen     = 8  // header of a message: the number of the gather; the pattern from offset rank follows
)

// gatherConnInfo is the connection information that root and senders exchange: one endpoint for
// each sender in the root's, a single one in a sender's.
type gatherConnInfo struct{ Data, Control []verbs.Endpoint }

func init() {
	proc.RegisterArgs(worker, roleSender, func(ctx context.Context, w *proc.Worker, o GatherOptions) error {
		e, err := openSide(w, gatherConfig)
		if err != nil {
			return err
		}
		defer e.dev.Close()
		s, err := openSender(ctx, e, o)
		if err != nil {
			return err
		}
		return proc.Serve(ctx, w, s.runRounds)
	})
}

// gatherConfig is the configuration of every device in a gather.
var gatherConfig = Config{MTU: 4096, Spin: rnic.DefaultSpin}

// A sender sends messages to the root.
type sender struct {
	*side
	o       GatherOptions
	cq      verbs.CQ
	data    verbs.QP
	control *controlQP
	mr      verbs.MR
	n       uint64 // number of the current gather
	wr      [1]verbs.SendWR
	wcs     [16]verbs.WC

	pendingControls int  // received control messages not yet handled
	sending         bool // the last message has not completed
}

func openSender(ctx context.Context, e *side, o GatherOptions) (s *sender, err error) {
	s = &sender{side: e, o: o}
	if s.cq, err = e.dev.CreateCQ(4 * controlDepth); err != nil {
		return nil, err
	}
	if s.mr, err = e.pd.RegMR(make([]byte, o.Size), verbs.AccessLocalWrite); err != nil {
		return nil, err
	}
	copy(s.mr.Bytes(), e.payloadPattern(e.Rank + o.Size)[e.Rank:])
	s.wr[0] = verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{s.mr.SGE(0, o.Size)}}
	mine := gatherConnInfo{make([]verbs.Endpoint, 1), make([]verbs.Endpoint, 1)}
	s.data, mine.Data[0], err = e.createQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: s.cq, RecvCQ: s.cq,
		Cap: verbs.QPCap{MaxSendWR: 4, MaxSendSGE: 1}})
	if err != nil {
		return nil, err
	}
	if s.control, mine.Control[0], err = e.newControlQP(s.cq); err != nil {
		return nil, err
	}
	infos, err := proc.Exchange(ctx, e.Worker, mine)
	if err != nil {
		return nil, err
	}
	root, me := infos[0], e.Rank-1
	if err := verbs.Connect(s.data, mine.Data[0], root.Data[me], verbs.ConnectOptions{AckTimeout: ackTimeout}); err != nil {
		return nil, err
	}
	if err := verbs.Connect(s.control.qp, mine.Control[0], root.Control[me], verbs.ConnectOptions{AckTimeout: ackTimeout}); err != nil {
		return nil, err
	}
	return s, proc.Barrier(ctx, e.Worker)
}

func (s *sender) runRounds(ctx context.Context, iters int) (*measure.Latency, error) {
	for range gatherWarmup + iters {
		if err := s.sendOnce(); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return measure.NewLatency(), proc.Barrier(ctx, s.Worker)
}

// sendOnce sends one message after the start message of the root.
func (s *sender) sendOnce() error {
	s.n++
	if err := s.waitControl(); err != nil {
		return err
	}
	if s.o.Scheme == ZeroCopy {
		if err := s.control.sendEmpty(); err != nil { // RTS
			return err
		}
		if err := s.waitControl(); err != nil { // RTR
			return err
		}
	}
	binary.LittleEndian.PutUint64(s.mr.Bytes(), s.n)
	_, err := s.data.PostSend(s.wr[:])
	s.sending = true
	return err
}

// waitControl waits for a control message of the root and for the completion of the last data
// message. It blocks, because there are more processes than processors. The wait cannot be
// cancelled; the parent kills a process that hangs.
func (s *sender) waitControl() error {
	for s.pendingControls == 0 || s.sending {
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
				s.pendingControls++
				err = s.control.repostRecv()
			case wc.QPN == s.data.Num():
				s.sending = false
			}
			if err != nil {
				return err
			}
		}
	}
	s.pendingControls--
	return nil
}
