package verbsbench

import "github.com/softrnic/softrnic/verbs"

const (
	controlDepth          = 32
	controlSignalInterval = controlDepth / 2 // every so many words one is signaled
)

// controlQP carries words without content between a root and one sender, over an
// RC queue pair of its own: begin, RTS and RTR, which never mix.
type controlQP struct {
	qp   verbs.QP
	sent int
	wr   [1]verbs.SendWR
}

// newControlQP makes a line whose receives are posted.
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

// sendEmpty sends a word.
func (l *controlQP) sendEmpty() error {
	l.wr[0].Flags = 0
	if l.sent++; l.sent%controlSignalInterval == 0 {
		l.wr[0].Flags = verbs.SendSignaled
	}
	_, err := l.qp.PostSend(l.wr[:])
	return err
}

// repostRecv makes room for another word.
func (l *controlQP) repostRecv() error {
	_, err := l.qp.PostRecv(make([]verbs.RecvWR, 1))
	return err
}
