package main

import (
	"net/netip"
	"os"

	"github.com/softrnic/softrnic/internal/debug/endpoint"
	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/impair"
	"github.com/softrnic/softrnic/rnic"
)

// deviceOptions are what the flags and the environment say of a device. What
// is wrong with them is a usageError.
func (a *app) deviceOptions() (rnic.Options, error) {
	o := a.options
	var err error
	if from, text := flagOrEnv("--addr", a.addr, rnic.EnvAddr); text != "" {
		o.Addr = netip.AddrPort{}
		if o.Addrs, err = rnic.ParseAddrs(text); err != nil {
			return o, usageErrorf("%s: %w", from, err)
		}
	}
	from, text := flagOrEnv("--impair", a.impair, rnic.EnvImpair)
	if _, err := impair.Parse(text); err != nil {
		return o, usageErrorf("%s: %w", from, err)
	}
	o.Impair = text
	if text := os.Getenv(rnic.EnvDebug); text != "" {
		if err := endpoint.CheckAddress(text); err != nil {
			return o, usageErrorf("%s: %w", rnic.EnvDebug, err)
		}
	}
	return o, nil
}

// addrGiven reports whether the user has said where a device is to be.
func (a *app) addrGiven() bool {
	return a.addr != "" || os.Getenv(rnic.EnvAddr) != "" || a.options.Addr.IsValid() || !a.options.Addrs.IsZero() || a.options.Conn != nil
}

// checkDeviceFlags tells what is wrong with --addr and --impair.
func (a *app) checkDeviceFlags() error {
	if _, err := rnic.ParseAddrs(a.addr); a.addr != "" && err != nil {
		return usageErrorf("--addr: %w", err)
	}
	if _, err := impair.Parse(a.impair); err != nil {
		return usageErrorf("--impair: %w", err)
	}
	return nil
}

// flagOrEnv is a flag's value or else the environment's, and where it is from.
func flagOrEnv(flag, value, env string) (from, text string) {
	if value != "" {
		return flag, value
	}
	return env, os.Getenv(env)
}

// openDefault opens the device that the command line asks for. `softrnic stat` finds
// it, unless SOFTRNIC_DEBUG names another endpoint or is "off".
func (a *app) openDefault() (*rnic.Device, error) { return a.openAt(netip.Addr{}) }

// openAt is open for a device that goes to ip unless the command line or the
// environment names another address.
func (a *app) openAt(ip netip.Addr) (*rnic.Device, error) {
	return a.openAtPort(netip.AddrPortFrom(ip, link.RoCEPort))
}

// openAtPort is openAt with a UDP port; 0 is any free one.
func (a *app) openAtPort(at netip.AddrPort) (*rnic.Device, error) {
	o, err := a.deviceOptions()
	if err != nil {
		return nil, err
	}
	if !o.Addr.IsValid() && o.Addrs.IsZero() && at.Addr().IsValid() {
		o.Addr, o.AnyPort = at, at.Port() == 0
	}
	dev, err := rnic.Open(o)
	if err == nil && os.Getenv(rnic.EnvDebug) == "" {
		_ = dev.ServeDebug(rnic.DebugAuto) // nobody asked for it: no reason to do without the device
	}
	return dev, err
}
