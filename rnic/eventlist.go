package rnic

// An eventList is a list of queues with an event, guarded by the lock of their
// channel. A queue is in at most one list.
type eventList struct {
	oldest, newest *completionQueue
}

// An eventNode links a queue into a list, guarded by the lock of its channel.
type eventNode struct {
	list         *eventList // or nil
	older, newer *completionQueue
}

// push appends c, which must be in no list.
func (l *eventList) push(c *completionQueue) {
	c.node = eventNode{list: l, older: l.newest}
	if l.newest != nil {
		l.newest.node.newer = c
	} else {
		l.oldest = c
	}
	l.newest = c
}

// pop removes and returns the oldest queue, or nil.
func (l *eventList) pop() *completionQueue {
	c := l.oldest
	if c != nil {
		c.removeFromList()
	}
	return c
}

// removeFromList removes c from the list that it is in, if any.
func (c *completionQueue) removeFromList() {
	p, l := c.node, c.node.list
	if l == nil {
		return
	}
	if p.older != nil {
		p.older.node.newer = p.newer
	} else {
		l.oldest = p.newer
	}
	if p.newer != nil {
		p.newer.node.older = p.older
	} else {
		l.newest = p.older
	}
	c.node = eventNode{}
}
