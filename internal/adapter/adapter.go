// Package adapter checks that a device was opened, and has the optional interfaces of devices and
// queue pairs, which adapters other than rnic may lack: a path whose MTU is unknown is taken to
// carry every packet, and refused datagrams are lost.
package adapter

import (
	"fmt"
	"net/netip"
	"reflect"

	"github.com/softrnic/softrnic/verbs"
)

// CheckDevice returns verbs.ErrInvalid if dev is nil or a nil pointer, as after an ignored error of
// the call that opens it, where a call on it would crash later.
func CheckDevice(dev verbs.Device) error {
	if v := reflect.ValueOf(dev); v.IsValid() && !(v.Kind() == reflect.Pointer && v.IsNil()) {
		return nil
	}
	return fmt.Errorf("nil device: %w", verbs.ErrInvalid)
}

// A PathFitter is a device or queue pair that knows the MTU of paths, as far as the system does:
// that of the route, or a smaller one from an ICMP message. verbs.Connect uses it as well.
type PathFitter interface {
	// FitPathMTU returns the largest MTU up to mtu whose packets fit the path to the adapter at
	// av, 0 if none does, and an error with verbs.ErrLimit if that is not mtu. If the path is
	// unknown, it returns mtu.
	FitPathMTU(av verbs.AHAttr, mtu verbs.MTU) (verbs.MTU, error)
}

// A RefusalReporter is a queue pair of datagrams (UD, GSI) that reports peers to which it cannot
// send. A datagram completes before the network can return an ICMP error, so the completion does
// not have it.
type RefusalReporter interface {
	// OnRefusal makes f be called for each packet of the queue pair that the system does not
	// send, or that causes an ICMP error, unless the error is transient. It replaces the previous
	// f; nil removes it. f is called with locks of the device held: it must not block, nor call
	// the device or its objects.
	OnRefusal(f func(*verbs.RefusedError))
}

// An AddressSharer is a device that may share its address with other devices.
type AddressSharer interface {
	// SharedServices returns the services of the address, or nil if the device has it alone.
	SharedServices() Services
}

// Services distribute requests for connections among the devices of one address.
type Services interface {
	// IDPrefix returns the bits that begin the communication IDs of this device, in the upper
	// bits of prefix, and their number. Messages that refer to other IDs go to other devices.
	IDPrefix() (prefix uint32, bits int)

	// AddManager records that the device has a connection manager, which may get requests for
	// services that no device has registered; RemoveManager undoes it.
	AddManager() error
	RemoveManager()

	// Register makes requests for a service go to this device, and Unregister undoes it. ok is
	// false if another device has registered the service.
	Register(service uint64) (ok bool, err error)
	Unregister(service uint64)

	// AddConn records a connection: the two communication IDs, and the queue pair number and the
	// adapter of the peer. If this process ends without RemoveConn, another one disconnects it.
	AddConn(peer netip.AddrPort, id, remoteID, remoteQPN uint32)
	RemoveConn(id uint32)
}

// SharedServices returns the services of the address of dev if dev shares it, or else nil.
func SharedServices(dev any) Services {
	if s, ok := dev.(AddressSharer); ok {
		return s.SharedServices()
	}
	return nil
}

// CheckPathMTU returns an error with verbs.ErrLimit if packets of mtu are known to exceed the path
// from p, a device or queue pair, to the adapter at av.
func CheckPathMTU(p any, av verbs.AHAttr, mtu verbs.MTU) error {
	if f, ok := p.(PathFitter); ok {
		_, err := f.FitPathMTU(av, mtu)
		return err
	}
	return nil
}

// FitPathMTU returns the largest MTU up to mtu that fits the path from p, a device or queue pair,
// to the adapter at av, or mtu if the path is unknown or no MTU fits.
func FitPathMTU(p any, av verbs.AHAttr, mtu verbs.MTU) verbs.MTU {
	if f, ok := p.(PathFitter); ok {
		if fits, _ := f.FitPathMTU(av, mtu); fits > 0 {
			return fits
		}
	}
	return mtu
}
