package rnic

import (
	"fmt"
	"os"
	"sync"

	"github.com/softrnic/softrnic/internal/debug"
	"github.com/softrnic/softrnic/verbs"
)

// Special addresses of debug endpoints, for Options.Debug and SOFTRNIC_DEBUG.
const (
	DebugAuto = debug.Auto // a Unix socket that `softrnic stat` finds
	DebugOff  = debug.Off  // no endpoint
)

// A debugEndpoint is the debug endpoint of a device, if it has one.
type debugEndpoint struct {
	mu     sync.Mutex
	server *debug.Server // or nil
	closed bool          // the device is closed
}

// ServeDebug opens the device's debug endpoint at addr and closes the previous
// one. addr is DebugAuto, "unix:/path", a loopback address with a port
// ("127.0.0.1:9479", port 0 for any free one), or DebugOff for none; other
// addresses are ErrInvalid. Close closes the endpoint. docs/observability.md
// describes its contents.
func (d *Device) ServeDebug(addr string) error {
	const op = "serve debug endpoint"
	if err := debug.CheckAddress(addr); err != nil {
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
	s, err := debug.Serve(debugView{d}, addr)
	if err != nil {
		return &verbs.OpError{Op: op, Object: d.name, Err: err}
	}
	d.debug.server = s
	return nil
}

// DebugAddr returns the address of the device's debug endpoint in the form that
// ServeDebug accepts, or "" without an endpoint.
func (d *Device) DebugAddr() string {
	d.debug.mu.Lock()
	defer d.debug.mu.Unlock()
	if d.debug.server == nil {
		return ""
	}
	return d.debug.server.Addr()
}

// openDebug opens the endpoint that options or environment request. The
// environment applies to many processes and devices at once, so a failure there
// is only logged.
func (d *Device) openDebug() error {
	if addr := d.options.Debug; addr != "" {
		return d.ServeDebug(addr)
	}
	addr := os.Getenv(EnvDebug)
	if addr == "" {
		return nil
	}
	if err := d.ServeDebug(addr); err != nil {
		d.log.Warn("debug endpoint not available", "device", d.name, EnvDebug, addr, "err", err)
	}
	return nil
}

// closeDebug closes the endpoint and ends its requests. Close calls it first.
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

// A debugView is the debug.Device of a device.
type debugView struct{ *Device }

// Stat implements debug.Device.
func (s debugView) Stat() any {
	return struct {
		debug.About
		Snapshot
	}{debug.AboutSelf(), s.Inspect()}
}

// QP implements debug.Device.
func (s debugView) QP(num uint32) (any, bool) { return s.InspectQP(num) }
