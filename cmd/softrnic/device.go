package main

import (
	"fmt"
	"net/netip"
	"os"

	"github.com/softrnic/softrnic/internal/debug"
	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/impair"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/rnic/rnicdebug"
)

// deviceOptions are what the flags and the environment say of a device. What
// is wrong with them is a usageError.
func (a *app) deviceOptions() (rnic.Options, error) {
	o := a.options
	from, text := "--addr", a.addr
	if text == "" {
		from, text = rnic.EnvAddr, os.Getenv(rnic.EnvAddr)
	}
	if text != "" {
		at, err := rnic.ParseAddr(text)
		if err != nil {
			return o, usage("%s: %w", from, err)
		}
		o.Addr = at
	}
	from, text = "--impair", a.impair
	if text == "" {
		from, text = rnic.EnvImpair, os.Getenv(rnic.EnvImpair)
	}
	if _, err := impair.Parse(text); err != nil {
		return o, usage("%s: %w", from, err)
	}
	o.Impair = text
	return o, nil
}

// device is an open device with its debug endpoint.
type device struct {
	*rnic.Device
	debug *rnicdebug.Server // or nil
}

// open opens the device that the command line asks for. `softrnic stat` finds
// it, unless SOFTRNIC_DEBUG names another endpoint or is "off".
func (a *app) open() (*device, error) { return a.openAt(netip.Addr{}) }

// openAt is open for a device that goes to ip unless the command line or the
// environment names another address.
func (a *app) openAt(ip netip.Addr) (*device, error) {
	o, err := a.deviceOptions()
	if err != nil {
		return nil, err
	}
	if !o.Addr.IsValid() && ip.IsValid() {
		o.Addr = netip.AddrPortFrom(ip, link.RoCEPort)
	}
	dev, err := rnic.Open(o)
	if err != nil {
		return nil, err
	}
	server, err := serveDebug(dev)
	if err != nil {
		dev.Close()
		return nil, err
	}
	return &device{dev, server}, nil
}

// serveDebug opens the debug endpoint. When nobody asked for one, a system
// that has no place for it is no reason to do without the device.
func serveDebug(dev *rnic.Device) (*rnicdebug.Server, error) {
	addr := os.Getenv(rnicdebug.EnvVar)
	if addr == "" {
		server, err := rnicdebug.Serve(dev, rnicdebug.Auto)
		if err != nil {
			return nil, nil
		}
		return server, nil
	}
	if err := debug.CheckAddress(addr); addr != rnicdebug.Off && err != nil {
		return nil, usage("%s: %w", rnicdebug.EnvVar, err)
	}
	return rnicdebug.FromEnvironment(dev)
}

// Close closes the endpoint and then the device.
func (d *device) Close() error {
	if err := d.debug.Close(); err != nil {
		d.Device.Close()
		return fmt.Errorf("close the debug endpoint: %w", err)
	}
	return d.Device.Close()
}
