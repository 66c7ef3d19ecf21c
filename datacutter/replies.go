package datacutter

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// replies reads what the copies of a consumer say: bye, and if they acknowledge
// units how many each has that it is not yet done with.
//
// A network may hold back what was written until the next call (see Network), so
// whoever could wait for another connection meanwhile has a goroutine in a Read
// of each.
type replies struct {
	window int
	done   []chan struct{} // closed when nothing more comes from the copy

	mu         sync.Mutex
	changed    sync.Cond
	unacked    []int   // units, by copy
	err        []error // why nothing more comes; nil after bye
	byeAllowed bool    // so the copies may say bye
}

// newReplies makes the readers, which end with the run.
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

// readReplies takes acknowledgements until the copy says bye or fails.
func (rs *replies) readReplies(to int, l *link) {
	defer close(rs.done[to])
	for {
		f, err := l.nextFrame()
		if more := rs.handleFrame(to, f, err); !more {
			return
		}
	}
}

// handleFrame notes a frame from a copy, or that it failed, and whether more may come.
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
		err = fmt.Errorf("%w: an acknowledgement of nothing", ErrFrame)
	default:
		rs.unacked[to]--
	}
	rs.err[to] = err
	rs.changed.Signal() // only the filter waits
	return err == nil
}

// chooseCopy waits until a copy can take a unit, and counts the unit. With an error
// it returns the copy that failed.
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

// allowBye says that no unit follows.
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

// peerReason is link.cause: what the peer said is in the hands of the reader.
func (rs *replies) peerReason(to int, l *link, err error) error {
	_ = l.conn.SetReadDeadline(time.Now().Add(l.grace)) // where that fails, so does the read
	said := rs.waitBye(to)
	var remote *RemoteError
	if errors.As(said, &remote) {
		return said
	}
	return l.explainError(err)
}
