package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/verbs"
)

// A tool is a command that stands in for a known RDMA program, with the name of its device.
type tool struct {
	*app
	name string // of the device, or "" for any
}

// atMostOneHost accepts the server's name, or no argument.
func atMostOneHost(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usageErrorf("%s takes one host at most, got %q", c.CommandPath(), args)
	}
	return nil
}

// openGiven opens the device at the address that the user has given, or returns nil if the peer's
// address determines it.
func (t *tool) openGiven() (verbs.Device, error) {
	if !t.addrGiven() {
		return nil, nil
	}
	return t.openNamed(netip.Addr{})
}

// openAtRoCEPort opens a device at an address of this machine, or any of the loopback interface,
// on UDP port 4791: the handshakes cannot carry another.
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
	return t.openNamed(netip.AddrFrom4([4]byte{127, 0, 0, 1})) // its error names the owner of the port
}

// probeDevice checks, before a server waits, that a device can be opened.
func (t *tool) probeDevice() error {
	dev, err := t.openAtRoCEPort(netip.Addr{})
	if err != nil {
		return err
	}
	return dev.Close()
}

// openVerbsAt opens a device at an address and UDP port; 0 is any free one.
func (t *tool) openVerbsAt(at netip.AddrPort) (verbs.Device, error) {
	return t.checkName(t.app.openAtPort(at))
}

func (t *tool) openNamed(ip netip.Addr) (verbs.Device, error) {
	return t.checkName(t.app.openAt(ip))
}

// checkName returns an opened device if it has the name of the flag.
func (t *tool) checkName(dev verbs.Device, err error) (verbs.Device, error) {
	if err != nil {
		return nil, err
	}
	if t.name != "" && t.name != dev.Name() {
		err := fmt.Errorf("IB device %s not found; the device is %s", t.name, dev.Name())
		return nil, errors.Join(err, dev.Close())
	}
	return dev, nil
}

// announce writes the address of a server to stderr; stdout has the original's output.
func (t *tool) announce(at any) { fmt.Fprintln(t.stderr, "softrnic: waiting for a client on", at) }

// announceTCP announces a server's TCP port.
func (t *tool) announceTCP(port int) { t.announce(fmt.Sprintf("TCP port %d", port)) }

// announceCM announces the addresses of a server in RDMA-CM.
func (t *tool) announceCM(at []netip.AddrPort) {
	names := make([]string, len(at))
	for i, a := range at {
		names[i] = a.String()
	}
	t.announce(strings.Join(names, " "))
}

// reportDropped writes the error of a dropped client.
func (t *tool) reportDropped(err error) { fmt.Fprintln(t.stderr, "softrnic: dropped:", err) }

// noODP is the reason for the absence of on-demand paging.
const noODP = "memory is not pinned, so on-demand paging does not apply"

// unsupportedFlags are flags of an original for features that do not exist here. They are refused
// with the reason.
type unsupportedFlags []unsupportedFlag

type unsupportedFlag struct{ name, reason string }

// add defines a hidden flag without a value.
func (u *unsupportedFlags) add(f *pflag.FlagSet, name, letter, reason string) {
	f.BoolP(name, letter, false, reason)
	f.MarkHidden(name)
	*u = append(*u, unsupportedFlag{name, reason})
}

// rejectGiven returns a usageError for a flag that was given.
func (u unsupportedFlags) rejectGiven(c *cobra.Command) error {
	for _, flag := range u {
		if c.Flags().Changed(flag.name) {
			return usageErrorf("--%s: not supported: %s", flag.name, flag.reason)
		}
	}
	return nil
}
