package main

import (
	"net/netip"
	"os"

	"github.com/softrnic/softrnic/internal/debug"
	"github.com/softrnic/softrnic/internal/environment"
	"github.com/softrnic/softrnic/internal/hostaddr"
	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/impair"
	"github.com/softrnic/softrnic/rnic"
)

// deviceOptions returns the device options of the flags and the environment. An invalid value is a
// usageError.
func (a *app) deviceOptions() (rnic.Options, error) {
	o := a.options
	if from, text := flagOrEnv("--addr", a.addr, rnic.EnvAddr); text != "" {
		o.Addr = netip.AddrPort{}
		if _, err := hostaddr.Parse(text); err != nil {
			return o, usageErrorf("%s: %w", from, err)
		}
		o.Addrs = text
	}
	from, text := flagOrEnv("--impair", a.impair, rnic.EnvImpair)
	if _, err := impair.Parse(text); err != nil {
		return o, usageErrorf("%s: %w", from, err)
	}
	o.Impair = text
	if text := os.Getenv(rnic.EnvDebug); text != "" {
		if err := debug.CheckAddress(text); err != nil {
			return o, usageErrorf("%s: %w", rnic.EnvDebug, err)
		}
	}
	from, text = flagOrEnv("--wire", a.wire, rnic.EnvWire)
	if o.Wire = rnic.Wire(text); text != "" && o.Wire != rnic.RoCE && o.Wire != rnic.IWARP {
		return o, usageErrorf("%s: %q, want %s or %s", from, text, rnic.RoCE, rnic.IWARP)
	}
	if err := link.CheckEnv(); err != nil {
		return o, usageErrorf("%w", err)
	}
	if _, err := environment.Word(rnic.EnvLog, "off", "error", "warn", "info", "debug"); err != nil {
		return o, usageErrorf("%w", err)
	}
	return o, nil
}

// addrGiven reports whether the user has given the address of a device.
func (a *app) addrGiven() bool {
	return a.addr != "" || os.Getenv(rnic.EnvAddr) != "" || a.options.Addr.IsValid() || a.options.Addrs != ""
}

// checkDeviceFlags returns a usageError for an invalid --addr or --impair.
func (a *app) checkDeviceFlags() error {
	if _, err := hostaddr.Parse(a.addr); a.addr != "" && err != nil {
		return usageErrorf("--addr: %w", err)
	}
	if _, err := impair.Parse(a.impair); err != nil {
		return usageErrorf("--impair: %w", err)
	}
	return nil
}

// flagOrEnv returns the value of a flag or else of the environment, with its origin.
func flagOrEnv(flag, value, env string) (from, text string) {
	if value != "" {
		return flag, value
	}
	return env, os.Getenv(env)
}

// openDefault opens the device at the address of the command line. `softrnic stat` finds it,
// unless SOFTRNIC_DEBUG names another endpoint or is "off".
func (a *app) openDefault() (*rnic.Device, error) { return a.openAt(netip.Addr{}) }

// openAt opens a device at ip unless the command line or the environment names another address.
func (a *app) openAt(ip netip.Addr) (*rnic.Device, error) {
	return a.openAtPort(netip.AddrPortFrom(ip, link.RoCEPort))
}

// openAtPort is openAt with a UDP port; 0 is any free one.
func (a *app) openAtPort(at netip.AddrPort) (*rnic.Device, error) {
	o, err := a.deviceOptions()
	if err != nil {
		return nil, err
	}
	if !o.Addr.IsValid() && o.Addrs == "" && at.Addr().IsValid() {
		o.Addr, o.AnyPort = at, at.Port() == 0
	}
	dev, err := rnic.Open(o)
	if err == nil && os.Getenv(rnic.EnvDebug) == "" {
		_ = dev.ServeDebug(rnic.DebugAuto) // not requested, so its failure is ignored
	}
	return dev, err
}
