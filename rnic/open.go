package rnic

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/softrnic/softrnic/internal/broker"
	"github.com/softrnic/softrnic/internal/congestion"
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
	var err error
	if env := os.Getenv(EnvAddr); env != "" && !o.Addr.IsValid() && o.Addrs == "" {
		if o.addrs, err = hostaddr.Parse(env); err != nil {
			return optionError(EnvAddr, err)
		}
	}
	if err := o.applyShareEnvironment(); err != nil {
		return err
	}
	if env := os.Getenv(EnvImpair); env != "" && o.Impair == "" {
		o.Impair = env
	}
	if env := os.Getenv(EnvWire); env != "" && o.Wire == "" && o.hooks.Conn == nil {
		if o.Wire = Wire(env); o.Wire != RoCE && o.Wire != IWARP {
			return optionError(EnvWire, fmt.Errorf("%q: want %s or %s", env, RoCE, IWARP))
		}
	}
	if env := os.Getenv(EnvDebug); env != "" && o.Debug == "" {
		if err := debug.CheckAddress(env); err != nil {
			return optionError(EnvDebug, err)
		}
	}
	if env := os.Getenv(envICM); env != "" && o.ICM == (ICM{}) {
		if o.ICM, err = parseICM(env); err != nil {
			return optionError(envICM, err)
		}
	}
	if env := os.Getenv(envCongestion); env != "" && o.Congestion == "" {
		if _, err := congestion.ParseMode(env); err != nil {
			return optionError(envCongestion, err)
		}
		o.Congestion = env
	}
	if o.Logger, err = newLogger(o); err != nil {
		return optionError(EnvLog, err)
	}
	environment.WarnUnknown(func(text string) { o.Logger.Warn(text) })
	return nil
}

// optionError returns the error of Open for an option or a variable of the environment.
func optionError(name string, err error) error {
	if errors.Is(err, verbs.ErrInvalid) {
		return &verbs.OpError{Op: "open device", Err: fmt.Errorf("%s: %w", name, err)}
	}
	return &verbs.OpError{Op: "open device", Err: fmt.Errorf("%w: %s: %w", verbs.ErrInvalid, name, err)}
}

// validate normalizes Addr, parses Addrs and returns ErrInvalid for options that
// exclude each other or are out of range.
func (o *Options) validate() error {
	o.Addr = normalizeBind(o.Addr)
	refuse := func(format string, args ...any) error {
		return &verbs.OpError{Op: "open device", Err: verbs.ErrInvalid, Detail: fmt.Sprintf(format, args...)}
	}
	ip := o.Addr.Addr()
	switch {
	case o.Wire != "" && o.Wire != RoCE && o.Wire != IWARP:
		return refuse("Options.Wire: %q, want %s or %s", o.Wire, RoCE, IWARP)
	case o.Wire == IWARP && (o.Share || o.Shards > 1 || o.hooks.Conn != nil):
		return refuse("Options.Wire: iwarp excludes Share, more than one shard, and a link of the caller")
	case o.Shards < 0 || o.Shards > maxShards:
		return refuse("Options.Shards: %d out of range [0, %d]", o.Shards, maxShards)
	case o.Shards > 1 && o.NoService:
		return refuse("Options.Shards: %d without a service, but a waiter sleeps in one socket only; clear NoService", o.Shards)
	case o.Shards > 1 && o.hooks.Conn != nil:
		return refuse("Options.Shards: %d, but Conn is one link", o.Shards)
	case o.Shards > 1 && o.Portable:
		return refuse("Options.Shards: %d, but only the fast path of Linux distributes packets to several sockets; clear Portable", o.Shards)
	case !ip.IsValid() && o.Addr.Port() != 0:
		return refuse("Options.Addr: port %d without an address", o.Addr.Port())
	case ip.IsValid() && o.Addrs != "":
		return refuse("Options.Addr: %v, and Options.Addrs: %q, but one of them selects the address; clear the other", o.Addr, o.Addrs)
	case ip.IsValid() && (ip.IsUnspecified() || ip.IsMulticast()):
		return refuse("Options.Addr: %v is not a single unicast address", ip)
	case o.RecvBuffer < link.SystemDefault || o.RecvBuffer > maxBuffer:
		return refuse("Options.RecvBuffer: %d out of range [%d, %d]", o.RecvBuffer, link.SystemDefault, maxBuffer)
	case o.SendBuffer < link.SystemDefault || o.SendBuffer > maxBuffer:
		return refuse("Options.SendBuffer: %d out of range [%d, %d]", o.SendBuffer, link.SystemDefault, maxBuffer)
	}
	if cause := o.checkShare(); cause != "" {
		return refuse("Options.Share: %s", cause)
	}
	if o.Addrs != "" {
		var err error
		if o.addrs, err = hostaddr.Parse(o.Addrs); err != nil {
			return optionError("Options.Addrs", err)
		}
	}
	if o.Congestion != "" {
		if _, err := congestion.ParseMode(o.Congestion); err != nil {
			return optionError("Options.Congestion", err)
		}
	}
	return o.ICM.validate(&o.hooks)
}

// rateMode returns the congestion control of queue pairs at a local address. A link of the caller
// has none by default: it may have no delay.
func (o *Options) rateMode(local netip.Addr) congestion.Mode {
	switch {
	case o.Congestion != "":
		mode, _ := congestion.ParseMode(o.Congestion) // validated
		return mode
	case o.hooks.Conn != nil || local.IsLoopback():
		return congestion.Off
	}
	return congestion.Auto
}

// openSockets opens the sockets, one for each shard, and returns the slot of a shared
// address.
func (o *Options) openSockets() ([]link.Conn, *broker.Member, error) {
	if o.hooks.Conn != nil {
		return []link.Conn{o.hooks.Conn}, nil, nil
	}
	lo := link.Options{
		NoGSO: o.NoGSO, NoGRO: o.NoGRO, NoMMsg: o.NoMMsg, Portable: o.Portable,
		RecvBuffer: o.RecvBuffer, SendBuffer: o.SendBuffer,
	}
	candidates, err := o.candidates()
	if err != nil {
		return nil, nil, &verbs.OpError{Op: "open device", Err: err}
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
		lo.NoTOS = a.Addr().IsLoopback() && o.rateMode(a.Addr()) == congestion.Off // loopback sets no ECN marks
		conns, member, err := o.openCandidate(lo)
		if err == nil {
			return conns, member, nil
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
	return nil, nil, o.openError(failedAt, failed)
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
	if len(o.addrs) > 0 && !o.Share {
		ip, first := at.Addr(), min(at.Port(), 1<<16-9)
		prefix := netip.PrefixFrom(ip, ip.BitLen()*3/4).Masked()
		if ip.Is4() && ip.IsLoopback() {
			prefix = netip.PrefixFrom(ip, 8).Masked()
		}
		detail = append(detail, fmt.Sprintf("several devices can share %s=%v if it is a range of ports (%v-%d), a prefix (%v), or a list of addresses with commas",
			EnvAddr, hostaddr.Join(o.addrs), netip.AddrPortFrom(ip, first), first+8, prefix))
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

// Upper limits of Options.
const (
	maxShards = 256
	maxBuffer = 1<<31 - 1 // bytes of a socket's buffer, an int of C
)

// candidates returns the addresses to try, in order.
func (o *Options) candidates() ([]netip.AddrPort, error) {
	switch {
	case o.Addr.Addr().IsValid():
		a := o.Addr
		if a.Port() == 0 && !o.AnyPort {
			a = netip.AddrPortFrom(a.Addr(), roceUDPPort)
		}
		return []netip.AddrPort{a}, nil
	case len(o.addrs) > 0:
		return o.addrs.candidates(o.AnyPort)
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
func raiseGOMAXPROCS(log *slog.Logger) {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) == 1 {
		runtime.GOMAXPROCS(2)
		log.Info("GOMAXPROCS raised from 1 to 2: set it in the environment to keep 1")
	}
}

func init() {
	rnichook.SetHooks = func(options any, h rnichook.Hooks) { options.(*Options).hooks = h }
	rnichook.NotifyChannel = func(channel any, f func(any)) {
		channel.(*completionChannel).notify = func(cq verbs.CQ) { f(cq) }
	}
	rnichook.RaiseEvent = func(cq any) { cq.(*completionQueue).raiseEvent() }
	rnichook.PostSendAll = func(qp, wrs any) error {
		_, err := qp.(*queuePair).postSend(wrs.([]verbs.SendWR), true)
		return err
	}
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
