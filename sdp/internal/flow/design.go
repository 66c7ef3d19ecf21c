package flow

import "fmt"

// Design is a flow control.
type Design uint8

// The designs. The zero value is the default.
const (
	NIC    Design = iota // virtual window and end-to-end credits of the adapter (section 5)
	RDMA                 // a ring at the peer that the sender manages (section 4)
	Credit               // a credit a message (section 3)
)

var designs = [...]string{NIC: "nic", RDMA: "rdma", Credit: "credit"}

// String is the design's name as command lines have it.
func (d Design) String() string {
	if int(d) < len(designs) {
		return designs[d]
	}
	return fmt.Sprintf("Design(%d)", uint8(d))
}

// ParseDesign is the reverse of String.
func ParseDesign(name string) (Design, error) {
	for d, n := range designs {
		if n == name {
			return Design(d), nil
		}
	}
	return 0, fmt.Errorf("flow control %q: it is nic, rdma or credit", name)
}

// MarshalText implements encoding.TextMarshaler.
func (d Design) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Design) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDesign(string(text))
	return err
}
