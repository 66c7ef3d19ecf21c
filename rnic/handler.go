package rnic

import (
	"slices"

	"github.com/softrnic/softrnic/verbs"
)

// Handle implements verbs.CompChannel.
func (ch *CompChannel) Handle(handler func(verbs.CQ) bool) error {
	const op = "set handler of completion channel"
	if handler == nil {
		return &verbs.OpError{Op: op, Object: ch.String(), Err: verbs.ErrInvalid, Detail: "it is nil"}
	}
	if err := ch.state(op); err != nil {
		return err
	}
	if !ch.handler.CompareAndSwap(nil, &handler) {
		return &verbs.OpError{Op: op, Object: ch.String(), Err: verbs.ErrInvalid, Detail: "it has one"}
	}
	ch.dev.changeHandled(func(list []*CompChannel) []*CompChannel { return append(list, ch) })
	return nil
}

// unhandle ends what Handle began. The handler may be at work for the last time.
func (ch *CompChannel) unhandle() {
	if ch.handler.Load() != nil {
		ch.dev.changeHandled(func(list []*CompChannel) []*CompChannel {
			return slices.DeleteFunc(list, func(one *CompChannel) bool { return one == ch })
		})
	}
}

// changeHandled changes a copy of the list of channels with a handler.
func (d *Device) changeHandled(change func([]*CompChannel) []*CompChannel) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []*CompChannel
	if old := d.handled.Load(); old != nil {
		list = slices.Clone(*old)
	}
	list = change(list)
	d.handled.Store(&list)
}

// look takes a look at the socket for the service, and has the events that come of it
// handled. Where the application computes, whoever waits for them would first have to
// get a processor.
func (s *shard) look() int {
	var list []*CompChannel
	if l := s.dev.handled.Load(); l != nil {
		list = *l
	}
	for _, ch := range list {
		ch.attended.Add(1)
	}
	n := s.step(caller{})
	if n > 0 {
		s.served.Add(uint64(n))
	}
	for _, ch := range list {
		ch.attended.Add(-1) // first: what is listed from now on is signaled
		ch.handle()
	}
	return n
}

// handle gives the events that were offered to the handler, and those that it does not
// want to who waits.
func (ch *CompChannel) handle() {
	handler := *ch.handler.Load()
	for {
		ch.mu.Lock()
		c := ch.offered.pop()
		ch.mu.Unlock()
		if c == nil {
			return
		}
		ch.dev.alerts.Add(1) // the handler may make a goroutine runnable
		if !handler(c) {
			ch.leave(c)
		}
	}
}

// leave lists a queue for who waits.
func (ch *CompChannel) leave(c *CQ) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	ch.mu.Lock()
	if c.place.list == nil {
		ch.waiting.put(c)
	}
	ch.mu.Unlock()
	ch.signal()
}
