package verbsbench

import "github.com/softrnic/softrnic/verbs"

const (
	controlDepth          = 32
	controlSignalInterval = controlDepth / 2 // every n-th message is signaled
)

// A controlQP carries empty control messages between a root and one sender over an RC queue
// pair of its own: start, RTS and RTR. The protocol state tells them apart.
type controlQP struct {
	qp   verbs.QP
	sent int
	wr   [1]verbs.SendWR
}

// newControlQP creates a control queue pair with posted receives.
func (e *side) newControlQP(cq verbs.CQ) (*controlQP, verbs.Endpoint, error) {
	qp, local, err := e.createQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: cq, RecvCQ: cq,
		Cap: verbs.QPCap{MaxSendWR: controlDepth, MaxRecvWR: controlDepth}})
	if err != nil {
		return nil, local, err
	}
	l := &controlQP{qp: qp}
	l.wr[0].Opcode = verbs.WRSend
	_, err = qp.PostRecv(make([]verbs.RecvWR, controlDepth))
	return l, local, err
}

// sendEmpty sends an empty message.
func (l *controlQP) sendEmpty() error {
	l.wr[0].Flags = 0
	if l.sent++; l.sent%controlSignalInterval == 0 {
		l.wr[0].Flags = verbs.SendSignaled
	}
	_, err := l.qp.PostSend(l.wr[:])
	return err
}

// repostRecv posts a receive in place of a completed one.
func (l *controlQP) repostRecv() error {
	_, err := l.qp.PostRecv(make([]verbs.RecvWR, 1))
	return err
}
