package rnic

import (
	"fmt"
	"net/netip"
	"os"
	"runtime"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/verbs"
)

// fromEnvironment adds what environment variables ask for.
func (o *Options) fromEnvironment() error {
	if env := os.Getenv(EnvAddr); env != "" && !o.Addr.IsValid() {
		ap, err := ParseAddr(env)
		if err != nil {
			return &verbs.OpError{Op: "open device", Object: EnvAddr, Err: err}
		}
		o.Addr = ap
	}
	if env := os.Getenv(EnvImpair); env != "" && o.Impair == "" {
		o.Impair = env
	}
	return nil
}

// check refuses options that make no sense.
func (o *Options) check() error {
	refuse := func(format string, args ...any) error {
		return &verbs.OpError{Op: "open device", Err: verbs.ErrInvalid, Detail: fmt.Sprintf(format, args...)}
	}
	ip := o.Addr.Addr()
	switch {
	case o.Shards < 0 || o.Shards > maxShards:
		return refuse("Shards is %d; give 1 to %d (0 means 1)", o.Shards, maxShards)
	case o.Shards > 1 && o.NoService:
		return refuse("Shards is %d without a service, but a waiter can sleep in one socket only; leave NoService out", o.Shards)
	case o.Shards > 1 && o.Conn != nil:
		return refuse("Shards is %d, but Conn is one link", o.Shards)
	case o.Shards > 1 && o.Portable:
		return refuse("Shards is %d, but only the fast path of Linux steers among several sockets; leave Portable out", o.Shards)
	case !ip.IsValid() && o.Addr.Port() != 0:
		return refuse("Addr has port %d and no address; give both", o.Addr.Port())
	case ip.IsValid() && (ip.IsUnspecified() || ip.IsMulticast()):
		return refuse("Addr %v is not one address of this machine, by which peers reach the device", ip)
	case o.RecvBuffer < link.SystemDefault || o.SendBuffer < link.SystemDefault:
		return refuse("RecvBuffer is %d and SendBuffer %d; give bytes, 0 for much or %d for what the system gives",
			o.RecvBuffer, o.SendBuffer, link.SystemDefault)
	}
	return o.ICM.check(o.Clock)
}

// open opens the sockets, one for each shard.
func (o *Options) open() ([]link.Conn, error) {
	if o.Conn != nil {
		return []link.Conn{o.Conn}, nil
	}
	lo := link.Options{
		NoGSO: o.NoGSO, NoGRO: o.NoGRO, NoMMsg: o.NoMMsg, Portable: o.Portable,
		RecvBuffer: o.RecvBuffer, SendBuffer: o.SendBuffer,
	}
	var err error
	for _, a := range o.candidates() {
		lo.Addr = a
		lo.NoTOS = a.Addr().IsLoopback() // where nothing marks packets on their way
		var conns []link.Conn
		if conns, err = link.OpenGroup(lo, max(1, o.Shards)); err == nil {
			return conns, nil
		}
		if !link.InUse(err) {
			break
		}
	}
	return nil, &verbs.OpError{Op: "open device", Object: lo.Addr.String(), Err: err}
}

// maxShards bounds Options.Shards.
const maxShards = 256

// loopbackTries is how many addresses of 127.0.0.0/8 are tried for a device
// that was given none.
const loopbackTries = 64

// candidates lists the addresses to try, in order.
func (o *Options) candidates() []netip.AddrPort {
	if o.Addr.Addr().IsValid() {
		a := o.Addr
		if a.Port() == 0 && !o.AnyPort {
			a = netip.AddrPortFrom(a.Addr(), roceUDPPort)
		}
		return []netip.AddrPort{a}
	}
	localhost := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	list := []netip.AddrPort{netip.AddrPortFrom(localhost, roceUDPPort)}
	if runtime.GOOS == "linux" { // where every address of 127.0.0.0/8 is the machine's own
		for range loopbackTries {
			r := secureRandom()
			a := netip.AddrFrom4([4]byte{127, byte(r>>16) | 1, byte(r >> 8), byte(r)%254 + 1})
			list = append(list, netip.AddrPortFrom(a, roceUDPPort))
		}
	}
	return append(list, netip.AddrPortFrom(localhost, 0))
}
