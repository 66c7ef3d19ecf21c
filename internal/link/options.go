package link

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/softrnic/softrnic/internal/spelling"
)

// EnvVar names the environment variable that switches accelerations off: a
// comma-separated list of "nogso", "nogro", "nommsg", "portable" and "noshm". The last one makes adapters
// of package rnic use their sockets also for packets to those of the same user on this host.
const EnvVar = "SOFTRNIC_LINK"

// Default sizes of socket buffers in bytes. The receive buffer holds packets that
// arrive while the adapter is busy, and bounds the sender's window.
const (
	DefaultRecvBuffer = 8 << 20
	DefaultSendBuffer = 4 << 20
)

// SystemDefault as a buffer size keeps the system's default (Linux:
// net.core.rmem_default, 208 KiB).
const SystemDefault = -1

// Options configure OpenUDP. The zero value of every field but Addr is the
// default.
type Options struct {
	// Addr is the address to bind: a definite IP address, because the ICRC
	// covers the source address, and a port; port 0 lets the system choose.
	// An IPv6 link-local address needs its zone, the name or the number of the
	// interface.
	Addr netip.AddrPort

	NoGSO    bool // one datagram per packet, no UDP_SEGMENT
	NoGRO    bool // no UDP_GRO: the system does not merge received datagrams
	NoMMsg   bool // one datagram per system call, no sendmmsg and recvmmsg
	NoTOS    bool // the traffic class of received packets stays 0; saves a control message for each datagram
	Portable bool // the link of systems other than Linux, on Go's net package

	reusePort  bool       // one of several links on the address, see OpenGroup
	membership membership // a group to receive from, see OpenMulticast

	RecvBuffer int   // bytes; 0 for DefaultRecvBuffer, or SystemDefault
	SendBuffer int   // bytes; 0 for DefaultSendBuffer, or SystemDefault
	TOS        uint8 // traffic class of packets whose Path has the same: saves a control message
}

// OpenUDP opens a link on a UDP socket: the accelerated one on Linux, the
// portable one elsewhere or on request. The environment variable SOFTRNIC_LINK
// adds to the options.
func OpenUDP(o Options) (Conn, error) {
	if err := o.applyEnv(os.Getenv(EnvVar)); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.Portable {
		return openPortable(o)
	}
	return openFast(o)
}

// AllowsSharedMemory reports whether SOFTRNIC_LINK lacks the word noshm: then adapters of one user on
// this host exchange packets through shared memory.
func AllowsSharedMemory() bool {
	return !slices.Contains(strings.Split(os.Getenv(EnvVar), ","), "noshm")
}

// CheckEnv returns an error if the environment variable SOFTRNIC_LINK has an unknown word.
func CheckEnv() error { return new(Options).applyEnv(os.Getenv(EnvVar)) }

// withDefaults replaces zero values by the defaults.
func (o Options) withDefaults() Options {
	o.Addr = netip.AddrPortFrom(NormalizeBind(o.Addr.Addr()), o.Addr.Port())
	if o.RecvBuffer == 0 {
		o.RecvBuffer = DefaultRecvBuffer
	}
	if o.SendBuffer == 0 {
		o.SendBuffer = DefaultSendBuffer
	}
	return o
}

// applyEnv applies the words of the environment variable.
func (o *Options) applyEnv(env string) error {
	if env == "" {
		return nil
	}
	for word := range strings.SplitSeq(env, ",") {
		switch word {
		case "nogso":
			o.NoGSO = true
		case "nogro":
			o.NoGRO = true
		case "nommsg":
			o.NoMMsg = true
		case "portable":
			o.Portable = true
		case "noshm": // of package shm
		default:
			return fmt.Errorf("link: %s=%q: unknown word %q%s; allowed are nogso, nogro, nommsg, portable and noshm, separated by commas", EnvVar, env, word,
				spelling.Hint(word, "nogso", "nogro", "nommsg", "portable", "noshm"))
		}
	}
	return nil
}

func (o *Options) validate() error {
	ip := o.Addr.Addr()
	switch {
	case !ip.IsValid():
		return fmt.Errorf("link: no address to bind; Options.Addr: want an IP address of this machine and a port")
	case ip.IsUnspecified():
		return fmt.Errorf("link: %v is not a definite address; the ICRC covers the source address, so bind one address of this machine", o.Addr)
	case ip.IsMulticast():
		return fmt.Errorf("link: %v is a multicast address; bind one address of this machine", o.Addr)
	case o.RecvBuffer < SystemDefault || o.SendBuffer < SystemDefault:
		return fmt.Errorf("link: buffer sizes %d (receive) and %d (send): want bytes, 0 for the default or %d for the system's", o.RecvBuffer, o.SendBuffer, SystemDefault)
	}
	return nil
}

// HopLimit is the IPv4 TTL or IPv6 hop limit of packets whose path has none,
// except to multicast groups, where it is the system's default of 1.
const HopLimit = 64

// socketOption is one setsockopt call.
type socketOption struct {
	name           string // as in the man pages
	level, optname int
	value          int
}
