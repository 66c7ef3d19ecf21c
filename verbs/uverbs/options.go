package uverbs

import "net/netip"

// Options select a device of the kernel.
type Options struct {
	// Name is the name of the device, for example "rxe0". By default it is the first device of
	// Devices that has a provider.
	Name string

	// Addr is the address of the device that entry 0 of the GID table has. By default it is the
	// first IPv4 address of RoCE v2, or the first global IPv6 address if there is none.
	Addr netip.Addr
}
