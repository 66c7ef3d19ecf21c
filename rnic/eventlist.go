package rnic

// eventList is a list of queues whose event came, guarded by the lock of their channel.
// A queue is in one at most.
type eventList struct {
	oldest, newest *CQ
}

// eventNode is a queue's place in a list, guarded by the lock of its channel.
type eventNode struct {
	list         *eventList // or nil
	older, newer *CQ
}

// push adds a queue that is in no list.
func (l *eventList) push(c *CQ) {
	c.node = eventNode{list: l, older: l.newest}
	if l.newest != nil {
		l.newest.node.newer = c
	} else {
		l.oldest = c
	}
	l.newest = c
}

// pop takes the oldest, or returns nil.
func (l *eventList) pop() *CQ {
	c := l.oldest
	if c != nil {
		c.removeFromList()
	}
	return c
}

// removeFromList takes a queue out of the list that it is in, if any.
func (c *CQ) removeFromList() {
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
