package flow

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/spelling"
)

// A Control is a flow control mode. The zero value is the default, NIC.
type Control uint8

// Flow control modes.
const (
	NIC    Control = iota // virtual window and end-to-end credits of the adapter (section 5)
	RDMA                  // ring at the peer, managed by the sender (section 4)
	Credit                // one credit per message (section 3)
)

var controlNames = [...]string{NIC: "nic", RDMA: "rdma", Credit: "credit"}

// String returns the name used in command lines: "nic", "rdma" or "credit".
func (d Control) String() string {
	if int(d) < len(controlNames) {
		return controlNames[d]
	}
	return fmt.Sprintf("FlowControl(%d)", uint8(d))
}

// ParseControl returns the mode with the given name, the inverse of String.
func ParseControl(name string) (Control, error) {
	for d, n := range controlNames {
		if n == name {
			return Control(d), nil
		}
	}
	return 0, fmt.Errorf("flow control %q: want nic, rdma or credit%s", name, spelling.Hint(name, controlNames[:]...))
}

// MarshalText implements encoding.TextMarshaler.
func (d Control) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Control) UnmarshalText(text []byte) (err error) {
	*d, err = ParseControl(string(text))
	return err
}
