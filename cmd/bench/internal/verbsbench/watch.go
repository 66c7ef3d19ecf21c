package verbsbench

import "time"

const (
	patience = 5 * time.Second // after which nothing will come any more
	glance   = 1 << 14         // empty looks between two at the clock
)

// watch limits a loop of looks that find nothing.
type watch struct {
	looks    int
	deadline time.Time
}

// expired counts one more look and reports whether patience has run out.
func (w *watch) expired() bool {
	if w.looks++; w.looks%glance != 0 {
		return false
	}
	now := time.Now()
	if w.deadline.IsZero() {
		w.deadline = now.Add(patience)
	}
	return now.After(w.deadline)
}
