package verbsbench

import "github.com/softrnic/softrnic/verbs"

const (
	lineDepth  = 32
	lineSignal = lineDepth / 2 // every so many words one is signaled
)

// line carries words without content between a root and one sender, over an
// RC queue pair of its own: begin, RTS and RTR, which never mix.
type line struct {
	qp   verbs.QP
	said int
	wr   [1]verbs.SendWR
}

// newLine makes a line whose receives are posted.
func (e *end) newLine(cq verbs.CQ) (*line, verbs.Endpoint, error) {
	qp, local, err := e.createQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: cq, RecvCQ: cq,
		Cap: verbs.QPCap{MaxSendWR: lineDepth, MaxRecvWR: lineDepth}})
	if err != nil {
		return nil, local, err
	}
	l := &line{qp: qp}
	l.wr[0].Opcode = verbs.WRSend
	_, err = qp.PostRecv(make([]verbs.RecvWR, lineDepth))
	return l, local, err
}

// say sends a word.
func (l *line) say() error {
	l.wr[0].Flags = 0
	if l.said++; l.said%lineSignal == 0 {
		l.wr[0].Flags = verbs.SendSignaled
	}
	_, err := l.qp.PostSend(l.wr[:])
	return err
}

// heard makes room for another word.
func (l *line) heard() error {
	_, err := l.qp.PostRecv(make([]verbs.RecvWR, 1))
	return err
}
