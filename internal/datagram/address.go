package datagram

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/internal/hostaddr"
)

// An Address is the address of a Port for its peers.
type Address struct {
	At    netip.AddrPort // address of the adapter
	QPN   uint32
	QKey  uint32 // random; datagrams with another Q_Key are dropped
	Epoch uint32 // incarnation, see nack.Options
	MTU   int    // longest datagram in bytes
}

// String returns the address in the form that ParseAddress reads: five fields
// separated by slashes.
func (a Address) String() string {
	return fmt.Sprintf("%v/%x/%x/%x/%d", a.At, a.QPN, a.QKey, a.Epoch, a.MTU)
}

// ParseAddress parses an address as String returns it.
func ParseAddress(s string) (a Address, err error) {
	fields := strings.Split(s, "/")
	if len(fields) != 5 {
		return Address{}, fmt.Errorf("parse address %.80q: %d fields, want 5", s, len(fields))
	}
	number := func(text string, base int) (v uint32) {
		n, e := strconv.ParseUint(text, base, 32)
		if err == nil {
			err = e
		}
		return uint32(n)
	}
	a.At, err = netip.ParseAddrPort(fields[0])
	a.At = hostaddr.CanonicalPort(a.At)
	a.QPN, a.QKey, a.Epoch, a.MTU = number(fields[1], 16), number(fields[2], 16), number(fields[3], 16), int(number(fields[4], 10))
	if err == nil {
		err = a.validate()
	}
	if err != nil {
		return Address{}, fmt.Errorf("parse address %.80q: %w", s, err)
	}
	return a, nil
}

// validate reports an error if no Port can have the address.
func (a *Address) validate() error {
	switch {
	case !a.At.IsValid() || a.At.Addr().IsUnspecified() || a.At.Addr().IsMulticast() || a.At.Port() == 0:
		return fmt.Errorf("adapter address %v: not a unicast address with a port", a.At)
	case a.QPN == 0 || a.QPN >= 1<<24:
		return fmt.Errorf("queue pair number 0x%x: out of range [1, 0xffffff]", a.QPN)
	case a.Epoch == 0 || a.MTU < 256 || a.MTU > 1<<16-1:
		return fmt.Errorf("epoch %d, MTU %d: epoch 0, or MTU out of range [256, 65535]", a.Epoch, a.MTU)
	}
	return nil
}
