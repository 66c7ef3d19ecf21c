//go:build linux

package lab

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// Addresses of the two sides, from the documentation ranges of RFC 5737 and RFC 3849. They exist
// in the namespace only.
var (
	HostIPv4  = netip.MustParseAddr("192.0.2.1")
	HostIPv6  = netip.MustParseAddr("2001:db8::1")
	GuestIPv4 = netip.MustParseAddr("192.0.2.2")
	GuestIPv6 = netip.MustParseAddr("2001:db8::2")
)

// Addresses of the control network, which has no injected faults.
var (
	controlHost  = netip.MustParseAddr("198.51.100.1")
	controlGuest = netip.MustParseAddr("198.51.100.2")
)

const (
	tunDevice = "/dev/net/tun"

	dataTap    = "tap0"
	controlTap = "tap1"

	// LargeMTU is the default MTU of the data link, enough for packets with 4096 bytes of
	// payload. SmallMTU is the usual MTU of Ethernet, enough for 1024.
	LargeMTU = 4400
	SmallMTU = 1500
)

// createCables creates the interfaces of the network namespace, including the TAP devices for the
// guest.
func createCables() error {
	if err := remountProcSys(); err != nil {
		return err
	}
	for _, name := range []string{dataTap, controlTap} {
		if err := runIP("tuntap", "add", "dev", name, "mode", "tap", "vnet_hdr"); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"link", "set", "lo", "up"},
		{"addr", "add", HostIPv4.String() + "/24", "dev", dataTap},
		{"link", "set", dataTap, "mtu", fmt.Sprint(LargeMTU), "up"},
		{"-6", "addr", "add", HostIPv6.String() + "/64", "dev", dataTap, "nodad"},
		{"addr", "add", controlHost.String() + "/24", "dev", controlTap},
		{"link", "set", controlTap, "up"},
	} {
		if err := runIP(args...); err != nil {
			return err
		}
	}
	return nil
}

// remountProcSys remounts /proc and /sys, so that they show the processes and interfaces of the
// namespaces.
func remountProcSys() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	for _, fs := range [][2]string{{"proc", "/proc"}, {"sysfs", "/sys"}} {
		if err := unix.Mount(fs[0], fs[1], fs[0], 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", fs[1], err)
		}
	}
	return nil
}

// runIP runs ip(8).
func runIP(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// openTap opens QEMU's side of a TAP device.
func openTap(name string) (*os.File, error) {
	f, err := os.OpenFile(tunDevice, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	req, err := unix.NewIfreq(name)
	if err == nil {
		req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		err = unix.IoctlIfreq(int(f.Fd()), unix.TUNSETIFF, req)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return f, nil
}
