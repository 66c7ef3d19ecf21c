package datacutter

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// demand knows how many units each copy of a consumer has that it is not yet
// done with.
type demand struct {
	window int
	done   []chan struct{} // closed when nothing more comes from the copy

	mu      sync.Mutex
	changed sync.Cond
	has     []int   // units, by copy
	err     []error // why nothing more comes; nil after bye
	leaving bool    // so the copies may say bye
}

// newDemand makes the readers of acknowledgements, which end with the run.
func newDemand(r *run, window int, links []*link) *demand {
	if window == 0 {
		window = defaultWindow
	}
	d := &demand{window: window, has: make([]int, len(links)), err: make([]error, len(links)), done: make([]chan struct{}, len(links))}
	d.changed.L = &d.mu
	for to := range links {
		d.done[to] = make(chan struct{})
	}
	for to, l := range links {
		r.pumps.Go(func() { d.read(to, l) })
	}
	return d
}

// read takes acknowledgements until the copy says bye or fails.
func (d *demand) read(to int, l *link) {
	defer close(d.done[to])
	for {
		f, err := l.next()
		if more := d.take(to, f, err); !more {
			return
		}
	}
}

// take notes a frame from a copy, or that it failed, and whether more may come.
func (d *demand) take(to int, f frame, err error) (more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case err != nil:
	case f.kind == kindBye && d.leaving:
		return false
	case f.kind != kindAck:
		err = unexpected(f.kind, "acknowledgements")
	case d.has[to] == 0:
		err = fmt.Errorf("%w: an acknowledgement of nothing", ErrFrame)
	default:
		d.has[to]--
	}
	d.err[to] = err
	d.changed.Signal() // only the filter waits
	return err == nil
}

// choose waits until a copy can take a unit, and counts the unit. With an error
// it returns the copy that failed.
func (d *demand) choose() (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		best := 0
		for to, n := range d.has {
			if d.err[to] != nil {
				return to, d.err[to]
			}
			if n < d.has[best] {
				best = to
			}
		}
		if d.has[best] < d.window {
			d.has[best]++
			return best, nil
		}
		d.changed.Wait()
	}
}

// leave says that no unit follows.
func (d *demand) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leaving = true
}

// bye waits for a copy's bye.
func (d *demand) bye(to int) error {
	<-d.done[to]
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err[to]
}

// why is link.why: what the peer said is in the hands of the reader.
func (d *demand) why(to int, l *link, err error) error {
	_ = l.conn.SetReadDeadline(time.Now().Add(l.grace)) // where that fails, so does the read
	said := d.bye(to)
	var remote *RemoteError
	if errors.As(said, &remote) {
		return said
	}
	return l.explain(err)
}
