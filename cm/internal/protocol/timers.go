package protocol

// timers is a min-heap of entries by deadline.
type timers []*entry

// A timer is the heap position and the deadline of an entry.
type timer struct {
	deadline Time // 0 if the timer is not set
	index    int
}

// set sets or, with at 0, removes the deadline of e.
func (t *timers) set(e *entry, at Time) {
	was := e.timer.deadline
	e.timer.deadline = at
	switch {
	case was == 0 && at == 0:
	case was == 0:
		e.timer.index = len(*t)
		*t = append(*t, e)
		t.up(e.timer.index)
	case at == 0:
		t.remove(e.timer.index)
	default:
		t.up(e.timer.index)
		t.down(e.timer.index)
	}
}

// next returns the earliest deadline, or 0 if there is none.
func (t timers) next() Time {
	if len(t) == 0 {
		return 0
	}
	return t[0].timer.deadline
}

func (t *timers) remove(i int) {
	h := *t
	last := len(h) - 1
	t.swap(i, last)
	h[last] = nil
	*t = h[:last]
	if i < last {
		t.up(i)
		t.down(i)
	}
}

func (t timers) swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].timer.index, t[j].timer.index = i, j
}

func (t timers) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if t[parent].timer.deadline <= t[i].timer.deadline {
			return
		}
		t.swap(i, parent)
		i = parent
	}
}

func (t timers) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(t) {
			return
		}
		if child+1 < len(t) && t[child+1].timer.deadline < t[child].timer.deadline {
			child++
		}
		if t[i].timer.deadline <= t[child].timer.deadline {
			return
		}
		t.swap(i, child)
		i = child
	}
}
