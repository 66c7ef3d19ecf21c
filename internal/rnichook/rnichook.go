// Package rnichook opens devices of package rnic on a link, a clock and a random
// source of the caller, for simulations and tests.
//
//	dev, err := rnic.Open(rnichook.WithHooks(rnic.Options{NoService: true}, rnichook.Hooks{Conn: conn}))
//
// Package rnic imports rnichook and sets its functions.
package rnichook

import "github.com/softrnic/softrnic/internal/link"

// Hooks replace parts of a device's environment. A zero field keeps
// the default.
type Hooks struct {
	Conn  link.Conn      // replaces the socket, and the addresses in the options
	Clock func() int64   // replaces the monotonic clock; nanoseconds, never 0; not with an ICM
	Stall func(ns int64) // replaces the busy waiting of an ICM, which then works with a Clock
	Rand  func() uint32  // replaces the random source of numbers and keys

	// Waiters of a device on a simulated host whose processor others share wait as those of a
	// process do, by the functions below. Without them they only wait for the driver.
	BeforePoll func() // is called before a waiter reads the socket
	Yield      func() // replaces sched_yield(2)

	// Devices that one goroutine drives may share the buffers of packets to send, and of those
	// received.
	Batch     *link.Batch
	Datagrams *link.Datagrams
}

// SetHooks stores h in options, a *rnic.Options. Package rnic sets it.
var SetHooks func(options any, h Hooks)

// NextTimer returns the time on the clock of a *rnic.Device, in nanoseconds, at
// which rnic.Device.Progress has work even if no packet arrives, or 0 for never.
// Drivers of a device without a service goroutine need it. Package rnic sets it.
var NextTimer func(device any) int64

// NotifyChannel makes a verbs.CompChannel without queues call f with the verbs.CQ for each event, in
// place of Wait and Handle: with the locks of the queue held, by whichever goroutine finds the
// event. f must not call the device. The drop-in library writes to a descriptor there, so that no
// goroutine is woken for an event. Package rnic sets it.
var NotifyChannel func(channel any, f func(cq any))

// RaiseEvent ends one Wait of a verbs.CQ without a channel, as an armed completion would: the next
// one, if none waits. A function of NotifyChannel calls it to wake a goroutine that drives the device
// while it waits for the channel. Package rnic sets it.
var RaiseEvent func(cq any)

// PostSendAll posts all requests, a []verbs.SendWR, to a verbs.QP of package rnic, or none if one of them is refused, and
// returns the error of that one. The drop-in library posts the requests of an ibv_wr_start with it.
// Package rnic sets it.
var PostSendAll func(qp, wrs any) error

// WithHooks returns o, a rnic.Options, with h.
func WithHooks[Options any](o Options, h Hooks) Options {
	SetHooks(&o, h)
	return o
}
