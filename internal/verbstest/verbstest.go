// Package verbstest has the tests of the contract of package verbs, which every adapter of this module
// passes but for the documented exceptions.
package verbstest

import (
	"net/netip"
	"testing"

	"github.com/softrnic/softrnic/verbs"
)

// A Device describes an adapter under test.
type Device struct {
	// Kind selects the exceptions, for example "rxe".
	Kind string

	// Open opens a device, which the end of the test closes. Two of them reach each other.
	Open func(t testing.TB) verbs.Device

	// Addr returns the address and the UDP port of a device.
	Addr func(d verbs.Device) netip.AddrPort

	// Count returns the number of objects of a device that exist, of a kind of package rnic's
	// snapshots, for example "pd". It is nil if the adapter does not count them.
	Count func(d verbs.Device, kind string) int

	// Counter returns a counter of the device by rxe's name.
	Counter func(d verbs.Device, name string) uint64

	// Drops returns the number of packets that were dropped for a reason. It is nil if the adapter
	// does not count them.
	Drops func(d verbs.Device, reason string) uint64

	// SameHeaders reports that equal datagrams have equal IP headers, with their identification.
	SameHeaders bool

	// Synchronous reports that an event is raised before the call returns that causes it.
	Synchronous bool

	// Explains reports that errors have the texts of package rnic, and failures a verbs.Failure.
	Explains bool
}

// A test is a test of the contract.
type test struct {
	name string
	run  func(t *T)
}

// Run runs all tests on a device, each as a subtest. A test with an exception must have the difference
// that the exception states.
func Run(t *testing.T, d Device) {
	for _, c := range tests {
		root := &T{TB: t, device: &d}
		root.Run(c.name, c.run)
	}
	checkExceptions(t, d.Kind)
}
