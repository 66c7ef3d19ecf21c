package rnic

// eventList is a list of queues whose event came, guarded by the lock of their channel.
// A queue is in one at most.
type eventList struct {
	oldest, newest *CQ
}

// place is a queue's place in a list, guarded by the lock of its channel.
type place struct {
	list         *eventList // or nil
	older, newer *CQ
}

// put adds a queue that is in no list.
func (l *eventList) put(c *CQ) {
	c.place = place{list: l, older: l.newest}
	if l.newest != nil {
		l.newest.place.newer = c
	} else {
		l.oldest = c
	}
	l.newest = c
}

// pop takes the oldest, or returns nil.
func (l *eventList) pop() *CQ {
	c := l.oldest
	if c != nil {
		c.unlist()
	}
	return c
}

// unlist takes a queue out of the list that it is in, if any.
func (c *CQ) unlist() {
	p, l := c.place, c.place.list
	if l == nil {
		return
	}
	if p.older != nil {
		p.older.place.newer = p.newer
	} else {
		l.oldest = p.newer
	}
	if p.newer != nil {
		p.newer.place.older = p.older
	} else {
		l.newest = p.older
	}
	c.place = place{}
}
