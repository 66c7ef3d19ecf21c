// Package rnictest opens devices of package rnic on a link, a clock and a random
// source of the caller, for simulations and tests.
package rnictest

import (
	"github.com/softrnic/softrnic/internal/rnichook"
	"github.com/softrnic/softrnic/rnic"
)

// Hooks replace the socket, the monotonic clock and the random source.
type Hooks = rnichook.Hooks

// WithHooks returns o with h, for rnic.Open. With a Conn, the addresses in o
// are not used; with a Clock, o must not have an ICM.
func WithHooks(o rnic.Options, h Hooks) rnic.Options {
	rnichook.SetHooks(&o, h)
	return o
}

// Open opens a device with h.
func Open(o rnic.Options, h Hooks) (*rnic.Device, error) { return rnic.Open(WithHooks(o, h)) }

// NextTimer returns the time on the device's clock, in nanoseconds, at which
// rnic.Device.Progress has work even if no packet arrives, or 0 for never.
// Drivers of a device without a service goroutine need it.
func NextTimer(d *rnic.Device) int64 { return rnichook.NextTimer(d) }
