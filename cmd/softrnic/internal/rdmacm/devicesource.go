package rdmacm

import (
	"net/netip"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
	"github.com/softrnic/softrnic/verbs"
)

// A DeviceSource provides the device of a tool: an open one, or a function that opens one.
type DeviceSource struct {
	// Device is an open device; the tool does not close it. If it is nil, Open is called
	// for one at an address of this machine: port 0 means any port, and the
	// zero AddrPort any free address of the loopback interface.
	Device verbs.Device
	Open   func(at netip.AddrPort) (verbs.Device, error)
}

// Check returns an error if the source has neither a device nor a function.
func (p *DeviceSource) Check() error {
	if p.Device == nil && p.Open == nil {
		return option.Errorf("device", "none given")
	}
	return nil
}
