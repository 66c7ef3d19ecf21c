package rnic

import (
	"errors"
	"fmt"
	"os"

	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/internal/broker"
	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/shm"
	"github.com/softrnic/softrnic/verbs"
)

// applyShareEnvironment sets Share from the environment, for programs that know nothing of it:
// those that would let the system choose a port use the shared one.
func (o *Options) applyShareEnvironment() error {
	switch env := os.Getenv(envShare); env {
	case "", "0":
	case "1":
		if !o.Share {
			o.Share, o.AnyPort = true, false
		}
	default:
		return optionError(envShare, fmt.Errorf("%q: want 0 or 1", env))
	}
	return nil
}

// checkShare returns the reason why a device with these options cannot share its address.
func (o *Options) checkShare() string {
	switch {
	case !o.Share || o.hooks.Conn != nil:
		return ""
	case o.Shards > 1:
		return fmt.Sprintf("a slot of a shared address is one socket, but Options.Shards is %d", o.Shards)
	case o.Portable:
		return "only the fast path of Linux shares an address; clear Portable"
	case o.AnyPort:
		return "the processes of a shared address must know its port; clear AnyPort"
	case !o.Addr.Addr().IsValid() && o.Addrs == "" && len(o.addrs) == 0:
		return "no address to share; set Addr, Addrs or " + EnvAddr
	}
	return ""
}

// openShared takes a slot of a shared address and opens the link on its socket.
func openShared(lo link.Options) (link.Conn, *broker.Member, error) {
	m, err := broker.Join(lo.Addr)
	if err != nil {
		var e *broker.Error
		if errors.As(err, &e) { // the caller names the address
			err = fmt.Errorf("%s shared address: %w", e.Op, e.Err)
		}
		if errors.Is(err, broker.ErrFull) {
			err = fmt.Errorf("%w: %w", verbs.ErrLimit, err)
		}
		return nil, nil, err
	}
	conn, err := link.Adopt(lo, m.Socket())
	if err != nil {
		return nil, nil, errors.Join(err, m.Close())
	}
	return conn, m, nil
}

// qpnRange returns the first number of the device's queue pairs, and the number of them.
func (d *Device) qpnRange() (first, count uint32) {
	if d.member == nil {
		return 0, 1 << 24
	}
	return broker.QPNRange(d.member.Slot())
}

// SharedServices implements adapter.AddressSharer.
func (d *Device) SharedServices() adapter.Services {
	if d.member == nil {
		return nil
	}
	return d.member
}

// leaveAddress frees the slot of a closed device.
func (d *Device) leaveAddress() error {
	if d.member == nil {
		return nil
	}
	return d.member.Close()
}

var _ adapter.AddressSharer = (*Device)(nil)

// closeLinks closes the links of a device that is not opened.
func closeLinks(conns []link.Conn, m *broker.Member) {
	for _, c := range conns {
		c.Close()
	}
	if m != nil {
		_ = m.Close() // the error of Open is another one
	}
}

// openCandidate opens the links at one address.
func (o *Options) openCandidate(lo link.Options) (conns []link.Conn, m *broker.Member, err error) {
	slot := -1
	if o.Wire == IWARP {
		tcp, err := link.OpenTCP(lo)
		if err != nil {
			return nil, nil, err
		}
		return []link.Conn{tcp}, nil, nil
	}
	if o.Share {
		var conn link.Conn
		conn, m, err = openShared(lo)
		if err == nil {
			conns, slot = []link.Conn{conn}, m.Slot()
		}
	} else {
		conns, err = link.OpenGroup(lo, max(1, o.Shards))
	}
	if err == nil && !o.NoSharedMemory && link.AllowsSharedMemory() {
		conns = shm.Wrap(conns, slot, broker.QPNSlot)
	}
	return conns, m, err
}
