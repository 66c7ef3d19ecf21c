package datacutter

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// replies reads the frames that the copies of a consumer send: acknowledgements and bye. It counts the
// unacknowledged units of each copy.
//
// A network may hold back written data until the next call (see Network). So while the filter may block on
// another connection, a goroutine has a Read pending on each of them.
type replies struct {
	window int
	done   []chan struct{} // closed when the copy sends no more frames

	mu         sync.Mutex
	changed    sync.Cond
	unacked    []int   // number of unacknowledged units, by copy
	err        []error // by copy; nil after bye
	byeAllowed bool    // bye was sent, so the copies may reply
}

// newReplies starts the readers, which end with the run.
func newReplies(r *run, window int, links []*link) *replies {
	if window == 0 {
		window = defaultWindow
	}
	rs := &replies{window: window, unacked: make([]int, len(links)), err: make([]error, len(links)), done: make([]chan struct{}, len(links))}
	rs.changed.L = &rs.mu
	for to := range links {
		rs.done[to] = make(chan struct{})
	}
	for to, l := range links {
		r.readers.Go(func() { rs.readReplies(to, l) })
	}
	return rs
}

// readReplies reads frames until the copy sends bye or fails.
func (rs *replies) readReplies(to int, l *link) {
	defer close(rs.done[to])
	for {
		f, err := l.nextFrame()
		if more := rs.handleFrame(to, f, err); !more {
			return
		}
	}
}

// handleFrame handles a frame from a copy, or its failure, and reports whether more may follow.
func (rs *replies) handleFrame(to int, f frame, err error) (more bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	switch {
	case err != nil:
	case f.kind == kindBye && rs.byeAllowed:
		return false
	case f.kind != kindAck:
		err = unexpectedFrame(f.kind, "acknowledgements")
	case rs.unacked[to] == 0:
		err = fmt.Errorf("%w: acknowledgement without an outstanding unit", ErrFrame)
	default:
		rs.unacked[to]--
	}
	rs.err[to] = err
	rs.changed.Signal() // the filter is the only waiter
	return err == nil
}

// chooseCopy waits until a copy has window for a unit, and counts the unit. With an error it returns the copy
// that failed.
func (rs *replies) chooseCopy() (int, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for {
		best := 0
		for to, n := range rs.unacked {
			if rs.err[to] != nil {
				return to, rs.err[to]
			}
			if n < rs.unacked[best] {
				best = to
			}
		}
		if rs.unacked[best] < rs.window {
			rs.unacked[best]++
			return best, nil
		}
		rs.changed.Wait()
	}
}

// allowBye records that no unit follows.
func (rs *replies) allowBye() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.byeAllowed = true
}

// waitBye waits for a copy's bye.
func (rs *replies) waitBye(to int) error {
	<-rs.done[to]
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.err[to]
}

// peerReason is link.peerReason when the reader goroutine has received the abort.
func (rs *replies) peerReason(to int, l *link, err error) error {
	_ = l.conn.SetReadDeadline(time.Now().Add(l.grace)) // if it fails, so does the read
	bye := rs.waitBye(to)
	var remote *RemoteError
	if errors.As(bye, &remote) {
		return bye
	}
	return l.explainError(err)
}
