package rnic

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/verbs"
)

// A deviceLife is the state of the end of a device: closed, or with a failed link.
type deviceLife struct {
	closing   sync.Once
	closed    atomic.Bool
	fault     atomic.Pointer[error] // why the link failed, if it has
	unusable  atomic.Bool           // closed or failed
	endedOnce sync.Once
	ended     chan struct{} // closed when the link has failed, or when Close has flushed all work
}

// Close implements verbs.Device. When it returns, the adapter no longer
// accesses registered memory. Flushed completions can still be polled. A
// concurrent second Close returns nil when the first is done.
func (d *Device) Close() (err error) {
	d.closing.Do(func() { err = d.close() })
	return err
}

func (d *Device) close() error {
	defer d.emitLogs()
	errs := []error{d.closeDebug()}
	if d.port.watcher != nil {
		errs = append(errs, d.port.watcher.Close())
	}
	d.closed.Store(true)
	d.qps.forEach((*queuePair).flushBeforeClose)
	d.unusable.Store(true)
	d.groups.close()
	if d.isStream() {
		d.qps.forEach((*queuePair).moveToError)
	}
	for _, s := range d.shards {
		errs = append(errs, s.socket.Close())
		s.wakeMonitor(monitorParked)
		if !d.options.NoService {
			<-s.serviceDone
		}
	}
	if d.connector != nil {
		d.connector.close()
	}
	errs = append(errs, d.leaveAddress())
	heldAddrs.CompareAndDelete(d.addr, d.name)
	d.qps.forEach((*queuePair).moveToError)
	d.notifyEnded()
	d.mu.Lock()
	errs = append(errs, d.stopCapture())
	cqs := d.cqs
	d.cqs = nil
	d.mu.Unlock()
	for c := range cqs {
		c.close(true)
	}
	d.events.close()
	d.log.Info("device closed", "device", d.name, "addr", d.addr)
	return errors.Join(errs...)
}

// trackCQ registers a completion queue to be closed with the device; untrackCQ
// removes it.
func (d *Device) trackCQ(c *completionQueue) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cqs != nil {
		d.cqs[c] = struct{}{}
	}
}

func (d *Device) untrackCQ(c *completionQueue) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.cqs, c)
}

// wakeLeaders wakes every leader that sleeps in a socket.
func (d *Device) wakeLeaders() {
	for _, s := range d.shards {
		s.socket.Wake()
	}
}

func (d *Device) quiesceShards() {
	for _, s := range d.shards {
		s.mu.Lock()
		s.flushZeroCopy()
		s.mu.Unlock()
	}
}

// checkUsable returns the error of op if the device is closed or its link has
// failed.
func (d *Device) checkUsable(op string) error {
	switch fault := d.fault.Load(); {
	case d.isClosed():
		return &verbs.OpError{Op: op, Object: d.name, Err: verbs.ErrClosed}
	case fault != nil:
		return &verbs.OpError{Op: op, Object: d.name, Err: *fault,
			Detail: "the device's link has failed; close the device and open it again"}
	}
	return nil
}

// linkFailed records that the socket failed. Locks of shards may be held.
func (d *Device) linkFailed(err error) {
	if d.isClosed() || errors.Is(err, net.ErrClosed) || !d.fault.CompareAndSwap(nil, &err) {
		return
	}
	d.unusable.Store(true)
	d.notifyEnded()
	d.linkFailures.Add(1)
	d.deferLog(func(log *slog.Logger) { log.Error("link failed", "device", d.name, "addr", d.addr, "err", err) })
	d.raiseEvent(verbs.AsyncEvent{Type: verbs.EventDeviceFatal, Port: 1, Failure: &verbs.Failure{
		Event: "the link failed: " + err.Error(), Cause: "close the device and open it again",
	}})
	go func() { // d.mu is taken before the locks of shards
		d.wakeAllWaiters()
		d.emitLogs()
	}()
}

// notifyEnded wakes the waiters on completion channels when the device is closed
// or its link has failed.
func (d *Device) notifyEnded() { d.endedOnce.Do(func() { close(d.ended) }) }

// wakeAllWaiters wakes every sleeping waiter of the device.
func (d *Device) wakeAllWaiters() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.cqs {
		c.wakeWaiters()
	}
	d.wakeLeaders()
}
