package rdmacm

import (
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/verbs"
)

// DeviceSource is where a tool runs.
type DeviceSource struct {
	// Device is an open device, which stays open. If it is nil, Open is called
	// for one at an address of this machine: port 0 means any port, and the
	// zero AddrPort any free address of the loopback interface.
	Device verbs.Device
	Open   func(at netip.AddrPort) (verbs.Device, error)
}

// Check refuses a place that is none.
func (p *DeviceSource) Check() error {
	if p.Device == nil && p.Open == nil {
		return &OptionError{"device", "there is none"}
	}
	return nil
}

// OptionError is an option that cannot be.
type OptionError struct {
	Option string // as on the command line: "-C"
	Why    string
}

func (e *OptionError) Error() string { return e.Option + ": " + e.Why }

// Refuse makes an *OptionError.
func Refuse(option, format string, args ...any) error {
	return &OptionError{option, fmt.Sprintf(format, args...)}
}
