package flow

import "fmt"

// Control is a flow control.
type Control uint8

// The designs. The zero value is the default.
const (
	NIC    Control = iota // virtual window and end-to-end credits of the adapter (section 5)
	RDMA                  // a ring at the peer that the sender manages (section 4)
	Credit                // a credit a message (section 3)
)

var controlNames = [...]string{NIC: "nic", RDMA: "rdma", Credit: "credit"}

// String is the design's name as command lines have it.
func (d Control) String() string {
	if int(d) < len(controlNames) {
		return controlNames[d]
	}
	return fmt.Sprintf("Design(%d)", uint8(d))
}

// ParseControl is the reverse of String.
func ParseControl(name string) (Control, error) {
	for d, n := range controlNames {
		if n == name {
			return Control(d), nil
		}
	}
	return 0, fmt.Errorf("flow control %q: it is nic, rdma or credit", name)
}

// MarshalText implements encoding.TextMarshaler.
func (d Control) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Control) UnmarshalText(text []byte) (err error) {
	*d, err = ParseControl(string(text))
	return err
}
