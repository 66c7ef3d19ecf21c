package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// tool is what the commands that stand in for RDMA's known programs share: how
// they come to a device.
type tool struct {
	*app
	name string // of the device, or "" for any
}

// atMostOneHost accepts the server's name, or nothing.
func atMostOneHost(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usageErrorf("%s takes one host at most, but there are %q", c.CommandPath(), args)
	}
	return nil
}

// openGiven returns the device at the address that the user has named, or nil if
// the address is to follow from the peer's.
func (t *tool) openGiven() (verbs.Device, error) {
	if !t.addrGiven() {
		return nil, nil
	}
	return t.openNamed(netip.Addr{})
}

// openAtRoCEPort opens a device at an address of this machine, or anywhere on the loopback
// interface, on UDP port 4791: handshakes have no word for another.
func (t *tool) openAtRoCEPort(ip netip.Addr) (verbs.Device, error) {
	dev, err := t.openNamed(ip)
	if err != nil {
		return nil, err
	}
	port, err := dev.QueryPort(1)
	if err != nil || port.UDPPort == link.RoCEPort {
		return dev, err
	}
	if err := dev.Close(); err != nil {
		return nil, err
	}
	return t.openNamed(netip.AddrFrom4([4]byte{127, 0, 0, 1})) // says who has the port
}

// probeDevice finds out, before a server waits, whether a device can be opened at all
// once a client is there.
func (t *tool) probeDevice() error {
	dev, err := t.openAtRoCEPort(netip.Addr{})
	if err != nil {
		return err
	}
	return dev.Close()
}

// openVerbsAt is at with a UDP port; 0 is any free one.
func (t *tool) openVerbsAt(at netip.AddrPort) (verbs.Device, error) {
	return t.checkName(t.app.openAtPort(at))
}

func (t *tool) openNamed(ip netip.Addr) (verbs.Device, error) {
	return t.checkName(t.app.openAt(ip))
}

// checkName is a device that was opened, if it is the one with the name.
func (t *tool) checkName(dev *rnic.Device, err error) (verbs.Device, error) {
	if err != nil {
		return nil, err
	}
	if t.name != "" && t.name != dev.Name() {
		err := fmt.Errorf("IB device %s not found; there is %s", t.name, dev.Name())
		return nil, errors.Join(err, dev.Close())
	}
	return dev, nil
}

// announce says where a server waits, on stderr: stdout is the original's.
func (t *tool) announce(at any) { fmt.Fprintln(t.stderr, "softrnic: waiting for a client on", at) }

// announceTCP is waiting for a server's TCP port.
func (t *tool) announceTCP(port int) { t.announce(fmt.Sprintf("TCP port %d", port)) }

// announceCM is waiting for the ports of RDMA-CM that a server listens on.
func (t *tool) announceCM(at []netip.AddrPort) {
	names := make([]string, len(at))
	for i, a := range at {
		names[i] = a.String()
	}
	t.announce(strings.Join(names, " "))
}

// reportDropped tells of a client that was sent away.
func (t *tool) reportDropped(err error) { fmt.Fprintln(t.stderr, "softrnic: dropped:", err) }
