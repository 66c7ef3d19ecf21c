package rnic

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/ifwatch"
	"github.com/softrnic/softrnic/verbs"
)

// A port is the state of a device's port: that of the interface with the
// device's address.
type port struct {
	state   atomic.Pointer[ifwatch.State]
	watcher *ifwatch.Watcher // nil if the state cannot change
}

// Physical states of a port (IBTA volume 1, PortInfo:PortPhysicalState).
const (
	physDisabled = 3
	physLinkUp   = 5
)

// watchPort starts following the interface. Without an interface (an in-memory
// network), or on systems without notifications, the state is constant.
func (d *Device) watchPort() {
	if d.options.hooks.Conn != nil || d.caps.Index == 0 {
		return
	}
	w, err := ifwatch.Watch(d.addr.Addr(), d.caps.Index, *d.port.state.Load(), d.handlePortChange)
	if err != nil {
		d.log.Debug("port state not monitored", "device", d.name, "err", err)
		return
	}
	d.port.watcher = w
}

// handlePortChange handles a change of the interface. Calls are serialized.
func (d *Device) handlePortChange(s ifwatch.State) {
	was := d.port.state.Swap(&s)
	if d.unusable.Load() {
		return
	}
	event := func(t verbs.EventType, cause string) {
		level := slog.LevelWarn
		if s.Usable() {
			level = slog.LevelInfo
		}
		d.log.Log(context.Background(), level, "port state changed", "device", d.name, "addr", d.addr, "event", t, "cause", cause)
		d.raiseEvent(verbs.AsyncEvent{Type: t, Port: 1, Failure: &verbs.Failure{Event: cause}})
		d.emitLogs()
	}
	switch {
	case was.HasAddr && !s.HasAddr:
		event(verbs.EventGIDChange, "no interface has the address "+d.addr.Addr().String()+" any more")
	case !was.HasAddr && s.HasAddr:
		event(verbs.EventGIDChange, "an interface has the address "+d.addr.Addr().String()+" again")
	}
	switch {
	case was.Usable() && !s.Usable():
		cause := "the interface is down or has no carrier"
		if !s.HasAddr {
			cause = "no interface has the address"
		}
		event(verbs.EventPortErr, cause)
	case !was.Usable() && s.Usable():
		event(verbs.EventPortActive, "the interface is up")
	}
}

// portState returns the state for QueryPort.
func (d *Device) portState() (state verbs.PortState, phys uint8) {
	if d.unusable.Load() || !d.port.state.Load().Usable() {
		return verbs.PortDown, physDisabled
	}
	return verbs.PortActive, physLinkUp
}

// activeMTU returns the largest RoCE MTU that the interface carries now.
func (d *Device) activeMTU() verbs.MTU { return mtuOfInterface(d.port.state.Load().MTU, d.addr.Addr()) }
