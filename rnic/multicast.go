package rnic

import "github.com/softrnic/softrnic/verbs"

// AttachMcast implements verbs.QP.
func (q *QP) AttachMcast(group verbs.GID) error {
	return &verbs.OpError{Op: "attach multicast", Object: q.core.String(), Err: verbs.ErrUnsupported}
}

// DetachMcast implements verbs.QP.
func (q *QP) DetachMcast(group verbs.GID) error {
	return &verbs.OpError{Op: "detach multicast", Object: q.core.String(), Err: verbs.ErrUnsupported}
}
