package rnic

import (
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/verbs"
)

// Handle implements verbs.CompChannel.
func (ch *completionChannel) Handle(handler func(verbs.CQ) bool) error {
	const op = "set handler of completion channel"
	if handler == nil {
		return &verbs.OpError{Op: op, Object: ch.String(), Err: verbs.ErrInvalid, Detail: "handler is nil"}
	}
	if err := ch.checkUsable(op); err != nil {
		return err
	}
	if !ch.handler.CompareAndSwap(nil, &handler) {
		return &verbs.OpError{Op: op, Object: ch.String(), Err: verbs.ErrInvalid, Detail: "the channel has a handler"}
	}
	ch.dev.updateHandledChannels(ch, true)
	return nil
}

// updateHandledChannels replaces the list of channels with a handler by a copy
// with or without ch. After its removal a last call of the handler may still be
// running.
func (d *Device) updateHandledChannels(ch *completionChannel, handled bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []*completionChannel
	if old := d.handledChannels.Load(); old != nil {
		list = slices.DeleteFunc(slices.Clone(*old), func(one *completionChannel) bool { return one == ch })
	}
	if handled {
		list = append(list, ch)
	}
	d.handledChannels.Store(&list)
}

// pollForService polls the socket for the service and calls the handlers of
// channels for the resulting events. While the application computes, a waiter
// for those events would first have to get a processor.
func (s *shard) pollForService() int {
	var list []*completionChannel
	if l := s.dev.handledChannels.Load(); l != nil {
		list = *l
	}
	for _, ch := range list {
		ch.servicePolls.Add(1)
	}
	n := s.pollSocket(caller{})
	for _, ch := range list {
		ch.servicePolls.Add(-1) // before handleEvents: later events wake a waiter
		ch.handleEvents()
	}
	return n
}

// handleEvents passes the offered events to the handler, and those it declines
// to waiters.
func (ch *completionChannel) handleEvents() {
	handler := *ch.handler.Load()
	for {
		ch.mu.Lock()
		c := ch.offered.pop()
		ch.mu.Unlock()
		if c == nil {
			return
		}
		ch.dev.wakeups.Add(1) // the handler may make a goroutine runnable
		if !ch.callHandler(handler, c) {
			c.mu.Lock()
			if !c.closed {
				ch.enqueueEvent(c, false)
			}
			c.mu.Unlock()
		}
	}
}

// callHandler calls the handler, which must return: a panic ends the process, and
// runtime.Goexit, which would end the service instead, is made one.
func (ch *completionChannel) callHandler(handler func(verbs.CQ) bool, c *completionQueue) (handled bool) {
	returned := false
	defer func() {
		if reason := recover(); reason != nil {
			panic(reason)
		}
		if !returned {
			panic(fmt.Sprintf("rnic: handler of %v called runtime.Goexit", ch))
		}
	}()
	handled = handler(c)
	returned = true
	return handled
}
