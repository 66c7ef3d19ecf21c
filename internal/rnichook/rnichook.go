// Package rnichook lets package internal/rnictest reach parts of package rnic
// that are not public. Package rnic imports rnichook and sets its functions.
package rnichook

import "github.com/softrnic/softrnic/internal/link"

// Hooks replace what a device takes from its environment. A zero field keeps
// the default.
type Hooks struct {
	Conn  link.Conn     // replaces the socket
	Clock func() int64  // replaces the monotonic clock; nanoseconds, never 0
	Rand  func() uint32 // replaces the random source of numbers and keys
}

// Set by package rnic.
var (
	// SetHooks stores h in options, a *rnic.Options.
	SetHooks func(options any, h Hooks)

	// NextTimer returns the earliest deadline of device, a *rnic.Device.
	NextTimer func(device any) int64
)
