package rdmacm

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// A Format is the form of addresses on the command line (-f). It is the value of a flag.
type Format string

// The formats. The zero value accepts all of them.
const (
	FormatName Format = "name"
	FormatIP   Format = "ip"
	FormatIPv6 Format = "ipv6"
)

// String implements pflag.Value.
func (f *Format) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *Format) Type() string { return "format" }

// Set implements pflag.Value. Like the originals it compares prefixes and ignores case.
func (f *Format) Set(s string) error {
	switch lower := strings.ToLower(s); {
	case strings.HasPrefix(lower, "gid"):
		return fmt.Errorf("GID addresses are InfiniBand's; on Ethernet give an IP address, from which the GID is made")
	case lower == "name", lower == "ip", lower == "ipv6":
		*f = Format(lower)
		return nil
	}
	return fmt.Errorf("unknown address format %q; want name, ip or ipv6", s)
}

// A PortSpace is the flag value of a port space (-P of ucmatose): tcp or ib.
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
		return fmt.Errorf("unknown port space %q; want tcp or ib", s)
	}
	return nil
}

// A TimeoutCode is the flag value of an ACK timeout (-a of ucmatose): a code n stands for 4.096 us
// * 2^n, and 0 for no timeout. The zero value is unset.
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
		return fmt.Errorf("timeout code %q: want 0 to 31, for 4.096 us * 2^n", s)
	}
	*t = TimeoutCode{uint8(n), true}
	return nil
}

// AckTimeout returns the value for verbs.ConnectOptions.AckTimeout.
func (t TimeoutCode) AckTimeout() time.Duration {
	if t.given && t.code == 0 {
		return -1
	}
	return verbs.AckTimeout(t.code)
}
