package rnic

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/softrnic/softrnic/internal/debug"
	"github.com/softrnic/softrnic/internal/environment"
	"github.com/softrnic/softrnic/internal/hostaddr"
	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/rnichook"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
)

// applyEnvironment fills in unset options from environment variables.
func (o *Options) applyEnvironment() error {
	refuse := func(name string, err error) error {
		if !errors.Is(err, verbs.ErrInvalid) {
			err = fmt.Errorf("%w (%w)", err, verbs.ErrInvalid)
		}
		return &verbs.OpError{Op: "open device", Object: name, Err: err}
	}
	var err error
	if env := os.Getenv(EnvAddr); env != "" && !o.Addr.IsValid() && o.Addrs.IsZero() {
		if o.Addrs, err = ParseAddrs(env); err != nil {
			return refuse(EnvAddr, err)
		}
	}
	if env := os.Getenv(EnvImpair); env != "" && o.Impair == "" {
		o.Impair = env
	}
	if env := os.Getenv(EnvDebug); env != "" && o.Debug == "" {
		if err := debug.CheckAddress(env); err != nil {
			return refuse(EnvDebug, err)
		}
	}
	if o.Logger, err = newLogger(o); err != nil {
		return refuse(EnvLog, err)
	}
	environment.WarnUnknown(func(text string) { o.Logger.Warn(text) })
	return nil
}

// validate normalizes Addr and returns ErrInvalid for options that exclude each
// other or are out of range.
func (o *Options) validate() error {
	o.Addr = normalizeBind(o.Addr)
	refuse := func(format string, args ...any) error {
		return &verbs.OpError{Op: "open device", Err: verbs.ErrInvalid, Detail: fmt.Sprintf(format, args...)}
	}
	ip := o.Addr.Addr()
	switch {
	case o.Shards < 0 || o.Shards > maxShards:
		return refuse("Shards is %d: want 1 to %d (0 means 1)", o.Shards, maxShards)
	case o.Shards > 1 && o.NoService:
		return refuse("Shards is %d without a service, but a waiter sleeps in one socket only; clear NoService", o.Shards)
	case o.Shards > 1 && o.hooks.Conn != nil:
		return refuse("Shards is %d, but Conn is one link", o.Shards)
	case o.Shards > 1 && o.Portable:
		return refuse("Shards is %d, but only the fast path of Linux distributes packets to several sockets; clear Portable", o.Shards)
	case !ip.IsValid() && o.Addr.Port() != 0:
		return refuse("Addr has port %d and no address; give both", o.Addr.Port())
	case ip.IsValid() && (ip.IsUnspecified() || ip.IsMulticast()):
		return refuse("Addr %v is not a single unicast address", ip)
	case o.RecvBuffer < link.SystemDefault || o.SendBuffer < link.SystemDefault:
		return refuse("RecvBuffer is %d and SendBuffer %d: want bytes, 0 for the default of the link or %d for that of the system",
			o.RecvBuffer, o.SendBuffer, link.SystemDefault)
	}
	return o.ICM.validate(o.hooks.Clock)
}

// openSockets opens the sockets, one for each shard.
func (o *Options) openSockets() ([]link.Conn, error) {
	if o.hooks.Conn != nil {
		return []link.Conn{o.hooks.Conn}, nil
	}
	lo := link.Options{
		NoGSO: o.NoGSO, NoGRO: o.NoGRO, NoMMsg: o.NoMMsg, Portable: o.Portable,
		RecvBuffer: o.RecvBuffer, SendBuffer: o.SendBuffer,
	}
	candidates, err := o.candidates()
	if err != nil {
		return nil, &verbs.OpError{Op: "open device", Err: err}
	}
	// An address of another host does not end the search, and an address of this
	// host that is in use takes precedence as the error.
	var foreign netip.Addr
	var failed error
	var failedAt netip.AddrPort
	for _, a := range candidates {
		a = normalizeBind(a)
		if a.Addr() == foreign {
			continue
		}
		lo.Addr = a
		lo.NoTOS = a.Addr().IsLoopback() // loopback sets no ECN marks
		conns, err := link.OpenGroup(lo, max(1, o.Shards))
		if err == nil {
			return conns, nil
		}
		notOurs := link.IsAddrNotLocal(err)
		if failed == nil || !notOurs {
			failed, failedAt = err, a
		}
		if notOurs {
			foreign = a.Addr()
		} else if !link.IsAddrInUse(err) {
			break
		}
	}
	return nil, o.openError(failedAt, failed)
}

// openError explains why no address could be opened; at was the last one tried.
func (o *Options) openError(at netip.AddrPort, err error) error {
	e := &verbs.OpError{Op: "open device", Object: at.String(), Err: err}
	if !link.IsAddrInUse(err) {
		return e
	}
	var detail []string
	if name, ours := findHolder(at); ours {
		e.Err = fmt.Errorf("%s, a device of this process, has this address and port: %w", name, unwrapErrno(err))
		detail = append(detail, "give each device an address or a port of its own")
	}
	if !o.Addrs.IsZero() {
		ip, first := at.Addr(), min(at.Port(), 1<<16-9)
		prefix := netip.PrefixFrom(ip, ip.BitLen()*3/4).Masked()
		if ip.Is4() && ip.IsLoopback() {
			prefix = netip.PrefixFrom(ip, 8).Masked()
		}
		detail = append(detail, fmt.Sprintf("several devices can share %s=%v if it is a range of ports (%v-%d), a prefix (%v), or a list of addresses with commas",
			EnvAddr, o.Addrs, netip.AddrPortFrom(ip, first), first+8, prefix))
	}
	e.Detail = strings.Join(detail, "; ")
	return e
}

// unwrapErrno returns the system's error number inside err, if any, or err.
func unwrapErrno(err error) error {
	if no := syscall.Errno(0); errors.As(err, &no) {
		return no
	}
	return err
}

// heldAddrs maps the addresses of this process's devices, as Device.Addr
// returns them, to their names.
var heldAddrs sync.Map // netip.AddrPort to string

// normalizeBind is link.NormalizeBind with a port. It keeps the zero AddrPort.
func normalizeBind(at netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(link.NormalizeBind(at.Addr()), at.Port())
}

// findHolder returns the name of the device of this process that is bound to
// the address.
func findHolder(at netip.AddrPort) (name string, ours bool) {
	v, ours := heldAddrs.Load(normalizeBind(at))
	name, _ = v.(string)
	return name, ours
}

// maxShards bounds Options.Shards.
const maxShards = 256

// candidates returns the addresses to try, in order.
func (o *Options) candidates() ([]netip.AddrPort, error) {
	switch {
	case o.Addr.Addr().IsValid():
		a := o.Addr
		if a.Port() == 0 && !o.AnyPort {
			a = netip.AddrPortFrom(a.Addr(), roceUDPPort)
		}
		return []netip.AddrPort{a}, nil
	case !o.Addrs.IsZero():
		return o.Addrs.candidates(o.AnyPort)
	}
	localhost := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	ips := []netip.Addr{localhost}
	if runtime.GOOS == "linux" { // where every address of 127.0.0.0/8 is the machine's own
		ips = hostaddr.DrawLoopback(netip.PrefixFrom(localhost, 8))
	}
	var list []netip.AddrPort
	for _, ip := range ips {
		list = append(list, netip.AddrPortFrom(ip, roceUDPPort))
	}
	return append(list, netip.AddrPortFrom(localhost, 0)), nil
}

// raiseGOMAXPROCS raises GOMAXPROCS from 1 to 2, unless it is set in the
// environment. A thread blocked in a system call keeps its processor of the
// runtime until the runtime's monitor retakes it, up to 10 ms later. In a
// process with one processor, for example a bound rank, nothing else would run
// meanwhile. Afterwards the runtime does not follow changes of the CPU count,
// until runtime.SetDefaultGOMAXPROCS.
func raiseGOMAXPROCS() {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) == 1 {
		runtime.GOMAXPROCS(2)
	}
}

func init() {
	rnichook.SetHooks = func(options any, h rnichook.Hooks) { options.(*Options).hooks = h }
	rnichook.NextTimer = func(device any) int64 { return int64(device.(*Device).nextDeadline()) }
}

// nextDeadline returns the time on the device's clock at which Progress has
// work even if no packet arrives, or 0 for never.
func (d *Device) nextDeadline() reliability.Time {
	var t reliability.Time
	for _, s := range d.shards {
		t = reliability.Earlier(t, reliability.Time(s.nextTimer.Load()))
		if f := s.faults.Load(); f != nil {
			t = reliability.Earlier(t, reliability.Time(f.NextDue()))
		}
	}
	return t
}
