package main

import (
	"net/netip"
	"os"
	"strings"

	"github.com/softrnic/softrnic/internal/debug"
	"github.com/softrnic/softrnic/internal/environment"
	"github.com/softrnic/softrnic/internal/hostaddr"
	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/impair"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/verbs/uverbs"
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

// addrGiven reports whether the user has given a device or its address.
func (a *app) addrGiven() bool {
	return a.device != "" || a.addr != "" || os.Getenv(rnic.EnvAddr) != "" || a.options.Addr.IsValid() || a.options.Addrs != ""
}

// checkDeviceFlags returns a usageError for an invalid --addr or --impair.
func (a *app) checkDeviceFlags() error {
	if err := a.checkKernelFlags(); err != nil {
		return err
	}
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

// openDefault opens the device at the address of the command line. `softrnic stat` finds one of
// softrnic, unless SOFTRNIC_DEBUG names another endpoint or is "off".
func (a *app) openDefault() (verbs.Device, error) { return a.openAt(netip.Addr{}) }

// openAt opens a device at ip unless the command line or the environment names another address.
func (a *app) openAt(ip netip.Addr) (verbs.Device, error) {
	return a.openAtPort(netip.AddrPortFrom(ip, link.RoCEPort))
}

// openAtPort is openAt with a UDP port; 0 is any free one. It is the only place where the tools open
// devices.
func (a *app) openAtPort(at netip.AddrPort) (verbs.Device, error) {
	if a.device != "" {
		return a.openKernelDevice(at.Addr())
	}
	o, err := a.deviceOptions()
	if err != nil {
		return nil, err
	}
	if !o.Addr.IsValid() && o.Addrs == "" && at.Addr().IsValid() {
		o.Addr, o.AnyPort = at, at.Port() == 0
	}
	dev, err := rnic.Open(o)
	if err != nil {
		return nil, err
	}
	if os.Getenv(rnic.EnvDebug) == "" {
		_ = dev.ServeDebug(rnic.DebugAuto) // not requested, so its failure is ignored
	}
	return dev, nil
}

// kernelPrefix begins the names of the kernel's devices as values of --device.
const kernelPrefix = "uverbs:"

// openKernelDevice opens the device of --device, at the address of --addr if that is given, or else at
// the given one unless that is of the loopback interface, which no device of the kernel has.
func (a *app) openKernelDevice(at netip.Addr) (verbs.Device, error) {
	o := uverbs.Options{Name: strings.TrimPrefix(a.device, kernelPrefix)}
	if at.IsValid() && !at.IsLoopback() && !at.IsUnspecified() {
		o.Addr = at
	}
	if a.addr != "" {
		var err error
		if o.Addr, err = netip.ParseAddr(a.addr); err != nil {
			return nil, usageErrorf("--addr: %q: want one IP address with --device", a.addr)
		}
	}
	return uverbs.Open(o)
}

// checkKernelFlags returns a usageError for an invalid --device, or flags that have no effect with it.
func (a *app) checkKernelFlags() error {
	switch name, ok := strings.CutPrefix(a.device, kernelPrefix); {
	case a.device == "":
		return nil
	case !ok || name == "":
		return usageErrorf("--device %s: want a device of the kernel such as uverbs:rxe0; --addr selects one of softrnic", a.device)
	case a.wire != "":
		return usageErrorf("--wire: no effect on a device of the kernel, which has one protocol")
	case a.impair != "":
		return usageErrorf("--impair: no effect on a device of the kernel; use tc(8) with netem")
	}
	return nil
}
