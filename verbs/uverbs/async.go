//go:build linux

package uverbs

import (
	"context"
	"sync"

	"github.com/softrnic/softrnic/verbs"
)

// readAsyncEvents reads the asynchronous events of the device until its file is closed. A read
// returns one event.
func (d *device) readAsyncEvents() {
	var e asyncEvent
	for {
		if n, err := d.asyncFile.Read(bytesOf(&e)); err != nil || n != len(bytesOf(&e)) {
			return // closed, or the kernel has removed the device
		}
		kind := verbs.EventType(e.kind)
		event := verbs.AsyncEvent{Type: kind}
		if isPortEvent(kind) {
			event.Port = int(e.element)
		} else if kind != verbs.EventDeviceFatal {
			o := d.findObject(e.element)
			if o == nil {
				continue // of an object that is being created or was closed
			}
			event = o.handleAsync(kind)
		}
		d.mu.Lock()
		d.events = append(d.events, event)
		d.mu.Unlock()
		d.signalEvent()
	}
}

// isPortEvent reports whether events of a type refer to a port.
func isPortEvent(t verbs.EventType) bool {
	switch t {
	case verbs.EventPortActive, verbs.EventPortErr, verbs.EventGIDChange, verbs.EventLIDChange, verbs.EventPKeyChange,
		verbs.EventSMChange, verbs.EventClientReregister:
		return true
	}
	return false
}

// signalEvent wakes one call of AsyncEvent.
func (d *device) signalEvent() {
	select {
	case d.eventQueued <- struct{}{}:
	default:
	}
}

// AsyncEvent implements verbs.Device.
func (d *device) AsyncEvent(ctx context.Context) (verbs.AsyncEvent, error) {
	for {
		d.mu.Lock()
		if n := len(d.events); n > 0 && !d.isClosed.Load() {
			event := d.events[0]
			d.events[0] = verbs.AsyncEvent{}
			d.events = d.events[1:]
			d.mu.Unlock()
			if n > 1 {
				d.signalEvent() // another call may wait
			}
			return event, nil
		}
		d.mu.Unlock()
		select {
		case <-d.eventQueued:
		case <-d.closed:
			return verbs.AsyncEvent{}, closedError("wait for event", d.String())
		case <-ctx.Done():
			return verbs.AsyncEvent{}, ctx.Err()
		}
	}
}

// An eventCount counts the events of an object that were handled. The kernel reports at its
// destruction how many were read: only then no event refers to the object any more.
type eventCount struct {
	mu      sync.Mutex
	changed *sync.Cond
	handled uint32
}

// addHandled counts one event.
func (c *eventCount) addHandled() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handled++
	if c.changed != nil {
		c.changed.Broadcast()
	}
}

// waitFor returns when n events were handled.
func (c *eventCount) waitFor(n uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed == nil {
		c.changed = sync.NewCond(&c.mu)
	}
	for c.handled < n {
		c.changed.Wait()
	}
}
