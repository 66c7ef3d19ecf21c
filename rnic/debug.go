package rnic

import (
	"fmt"
	"os"
	"sync"

	"github.com/softrnic/softrnic/internal/debug/endpoint"
	"github.com/softrnic/softrnic/verbs"
)

// Addresses of debug endpoints with a meaning of their own, for Options.Debug
// and SOFTRNIC_DEBUG.
const (
	DebugAuto = endpoint.Auto // a Unix socket that `softrnic stat` finds
	DebugOff  = endpoint.Off  // no endpoint
)

// debugEndpoint is the endpoint that a device has, if any.
type debugEndpoint struct {
	mu     sync.Mutex
	server *endpoint.Server // or nil
	closed bool             // the device is, so there will be none any more
}

// ServeDebug opens the device's debug endpoint at addr, in place of the one it
// has: DebugAuto, "unix:/path", a loopback address with a port ("127.0.0.1:9479",
// port 0 for any free one), or DebugOff for none. Every other address is
// refused. Close closes it. docs/observability.md tells what is to be seen.
func (d *Device) ServeDebug(addr string) error {
	const op = "serve debug endpoint"
	if err := endpoint.CheckAddress(addr); err != nil {
		return &verbs.OpError{Op: op, Object: d.name, Err: verbs.ErrInvalid, Detail: err.Error()}
	}
	d.debug.mu.Lock()
	defer d.debug.mu.Unlock()
	if d.debug.closed {
		return &verbs.OpError{Op: op, Object: d.name, Err: verbs.ErrClosed}
	}
	if s := d.debug.server; s != nil {
		d.debug.server = nil
		if err := s.Close(); err != nil {
			return &verbs.OpError{Op: op, Object: d.name, Err: err}
		}
	}
	if addr == DebugOff {
		return nil
	}
	s, err := endpoint.Serve(debugView{d}, addr)
	if err != nil {
		return &verbs.OpError{Op: op, Object: d.name, Err: err}
	}
	d.debug.server = s
	return nil
}

// DebugAddr is where the device's debug endpoint is, in the form that
// ServeDebug takes; "" if it has none.
func (d *Device) DebugAddr() string {
	d.debug.mu.Lock()
	defer d.debug.mu.Unlock()
	if d.debug.server == nil {
		return ""
	}
	return d.debug.server.Addr()
}

// openDebug opens the endpoint that options or environment ask for. The
// environment asks many processes and devices at once, so there what cannot be
// opened is no reason to do without the device.
func (d *Device) openDebug() error {
	if addr := d.options.Debug; addr != "" {
		return d.ServeDebug(addr)
	}
	addr := os.Getenv(EnvDebug)
	if addr == "" {
		return nil
	}
	if err := d.ServeDebug(addr); err != nil {
		d.log.Warn("the device has no debug endpoint", "device", d.name, EnvDebug, addr, "err", err)
	}
	return nil
}

// closeDebug ends the endpoint with what is under way there. It comes before
// the rest of Close.
func (d *Device) closeDebug() error {
	d.debug.mu.Lock()
	defer d.debug.mu.Unlock()
	d.debug.closed = true
	s := d.debug.server
	d.debug.server = nil
	if s == nil {
		return nil
	}
	if err := s.Close(); err != nil {
		return fmt.Errorf("close the debug endpoint: %w", err)
	}
	return nil
}

// debugView is a device as its debug endpoint shows it.
type debugView struct{ *Device }

// Stat implements endpoint.Device.
func (s debugView) Stat() any {
	return struct {
		endpoint.About
		Snapshot
	}{endpoint.AboutSelf(), s.Inspect()}
}

// QP implements endpoint.Device.
func (s debugView) QP(num uint32) (any, bool) { return s.InspectQP(num) }
