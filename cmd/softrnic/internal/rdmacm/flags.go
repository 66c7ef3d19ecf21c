package rdmacm

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// Format is how addresses are written (-f). It is a flag's value.
type Format string

// The formats. The zero value takes all of them.
const (
	FormatName Format = "name"
	FormatIP   Format = "ip"
	FormatIPv6 Format = "ipv6"
)

// String implements pflag.Value.
func (f *Format) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *Format) Type() string { return "format" }

// Set implements pflag.Value. The originals look at the beginning, and in any
// case of letters.
func (f *Format) Set(s string) error {
	switch lower := strings.ToLower(s); {
	case strings.HasPrefix(lower, "gid"):
		return fmt.Errorf("addresses in InfiniBand's form belong to its networks; on Ethernet give an IP address, of which the GID is made")
	case lower == "name", lower == "ip", lower == "ipv6":
		*f = Format(lower)
		return nil
	}
	return fmt.Errorf("unknown address format %q; there are name, ip and ipv6", s)
}

// PortSpace is a flag's port space (-P of ucmatose): tcp or ib.
type PortSpace struct{ To *cm.PortSpace }

// String implements pflag.Value.
func (p PortSpace) String() string {
	switch {
	case p.To == nil || *p.To == cm.TCP:
		return "tcp"
	case *p.To == cm.IB:
		return "ib"
	}
	return p.To.String()
}

// Type implements pflag.Value.
func (p PortSpace) Type() string { return "space" }

// Set implements pflag.Value.
func (p PortSpace) Set(s string) error {
	switch strings.ToLower(s) {
	case "tcp":
		*p.To = cm.TCP
	case "ib":
		*p.To = cm.IB
	default:
		return fmt.Errorf("unknown port space %q; there are tcp and ib", s)
	}
	return nil
}

// TimeoutCode is a flag's ACK timeout (-a of ucmatose): a code n for
// 4.096 us * 2^n, where 0 is none and so for ever. The zero value leaves it
// open.
type TimeoutCode struct {
	code  uint8
	given bool
}

// String implements pflag.Value.
func (t *TimeoutCode) String() string {
	if !t.given {
		return ""
	}
	return strconv.Itoa(int(t.code))
}

// Type implements pflag.Value.
func (t *TimeoutCode) Type() string { return "code" }

// Set implements pflag.Value.
func (t *TimeoutCode) Set(s string) error {
	n, err := strconv.ParseUint(s, 0, 8)
	if err != nil || n > 31 {
		return fmt.Errorf("%q is no code of a timeout; give 0 to 31, for 4.096 us * 2^n", s)
	}
	*t = TimeoutCode{uint8(n), true}
	return nil
}

// ConnectTimeout is what ConnectOptions.Timeout has for it.
func (t TimeoutCode) ConnectTimeout() uint8 {
	if t.given && t.code == 0 {
		return verbs.Zero
	}
	return t.code
}
