package rnic

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/rnichook"
)

// Environment variables that add to Options.
const (
	EnvAddr       = "SOFTRNIC_ADDR"       // addresses to choose from, as in Options.Addrs: "192.0.2.1", "127.0.0.0/8"
	envShare      = "SOFTRNIC_SHARE"      // 1: share the address with other processes, as Options.Share
	EnvImpair     = "SOFTRNIC_IMPAIR"     // faults to inject, as Options.Impair
	EnvLink       = link.EnvVar           // SOFTRNIC_LINK: accelerations to do without
	envCongestion = "SOFTRNIC_CONGESTION" // congestion control, as Options.Congestion: "auto"
	EnvDebug      = "SOFTRNIC_DEBUG"      // debug endpoint, as Options.Debug: "auto"
	EnvWire       = "SOFTRNIC_WIRE"       // protocol, as Options.Wire: "iwarp"
	envICM        = "SOFTRNIC_ICM"        // cache of contexts, as Options.ICM: "32,1us", or "off"
	EnvLog        = "SOFTRNIC_LOG"        // least level to log to stderr: off, error, warn, info, debug
)

// Options configure a device. The zero value opens one on the loopback
// interface, at the first address of 127.0.0.0/8 whose port 4791 is free.
type Options struct {
	// Addr is the address the device is bound to, and so its GID. Port 0 means
	// 4791. Several devices can share an address by having a port each. An IPv6
	// link-local address needs its interface as zone.
	Addr netip.AddrPort

	// Addrs is a comma-separated list of addresses, of which the device takes the
	// first that is free. It excludes Addr. Each entry is an address with or
	// without a port or a range of ports, or a prefix, which stands for all
	// addresses of this machine in it. An IPv6 link-local address needs its
	// interface, and an IPv4-mapped one is the IPv4 address:
	//
	//	192.0.2.1, 2001:db8::1, fe80::1%eth0
	//	192.0.2.1:4791-4799, [2001:db8::1]:4791-4799
	//	127.0.0.0/8, 192.0.2.0/24, [2001:db8::/64]:4791-4799
	//
	// Addresses that this machine does not have are skipped if it has another one,
	// so that one list serves several hosts. The default port is 4791. If another
	// device holds it, the ports above are tried: for an address only if that
	// device is of this process, for a prefix of real interfaces in any case. Peers
	// learn the port from the endpoint.
	Addrs string

	// AnyPort lets the system choose the port when Addr or Addrs have none: for
	// programs that tell their peers the port, as an endpoint does.
	AnyPort bool

	// Share makes the device share its address, from Addr, Addrs or the environment,
	// with devices of other processes of the same user that are opened with Share:
	// up to 64, each with 2^18 queue pair numbers. Peers notice nothing; connection
	// requests go to the device whose manager listens. It needs Linux. With 64 devices
	// at the address, Open returns verbs.ErrLimit; if the devices are of another
	// user, os.ErrPermission.
	Share bool

	// Wire is the protocol of the device: RoCE (the default) or IWARP. A device with IWARP listens
	// on the TCP port of its address, connects queue pairs of type RC over TCP, and has no other
	// types. It excludes Share and more than one shard, and needs Linux.
	Wire Wire

	// NoCRC makes a device with IWARP send and check no CRC unless the peer requires it.
	NoCRC bool

	// Name is the device's name; "softrnic" and a number unless given.
	Name string

	// Shards is the number of independent engines (socket, lock, timers,
	// service goroutine) among which queue pairs are spread; 0 means 1.
	// More than one needs Linux, where the kernel steers by destination QPN.
	Shards int

	// Spin is the time that a blocked waiter polls before it sleeps. 0 means
	// DefaultSpin; a negative value disables spinning.
	Spin time.Duration

	// NoService disables the service goroutine: the device makes progress only
	// in calls of Poll, Wait, Progress and the posting verbs.
	NoService bool

	// NoGSO, NoGRO, NoMMsg and Portable disable parts of the fast path.
	NoGSO, NoGRO, NoMMsg, Portable bool

	// NoSharedMemory sends all packets through the socket. Otherwise those to a device of the same
	// user and network namespace on this host pass through memory that both share (Linux).
	NoSharedMemory bool

	// NoSelective makes RC queue pairs retransmit all packets after a lost one,
	// as towards other adapters, also between softrnics.
	NoSelective bool

	// RecvBuffer and SendBuffer are the sizes of the socket's buffers in bytes;
	// 0 requests 8 and 4 MiB, -1 keeps the system's default.
	RecvBuffer, SendBuffer int

	// Impair injects faults: options of netem and rules about packets, for
	// example "loss 1% delay 2ms seed 7; drop every 2nd ACK". See
	// SetImpair.
	Impair string

	// ICM limits the number of queue pairs at full speed, as the context caches
	// of hardware do. The zero value is no limit.
	ICM ICM

	// Congestion selects the congestion control of RC queue pairs: "auto" takes DCQCN where
	// the path marks packets (ECN) and otherwise the round-trip time, "dcqcn" or "delay" only
	// one of them, and "off" leaves a window that shrinks on loss. The default is "auto", but
	// "off" at an address of the loopback interface. A queue pair may have its own, see
	// verbs.QPInitAttr.
	Congestion string

	// Capture writes all packets to this pcapng file, see Device.StartCapture.
	Capture string

	// Logger gets failures that no call returns, of the link, a capture or the debug
	// endpoint (warnings, errors), devices that open and close (information), and
	// asynchronous events and failures of queue pairs, which completions tell, with their
	// last packets (debugging). If it is nil, warnings and errors go to slog's default
	// logger, some of each device; see EnvLog. Its handler may use the device: no
	// lock of the device is held. A panic of the handler reaches the program's call
	// that made the record, or ends the process if the device's own goroutines did.
	Logger *slog.Logger

	// Debug is the address of the debug endpoint, see Device.ServeDebug.
	Debug string

	addrs addrList       // of Addrs or the environment
	hooks rnichook.Hooks // set by package internal/rnichook
}

// A Wire is the protocol of a device.
type Wire string

// The protocols.
const (
	RoCE  Wire = "roce"  // RoCE v2: InfiniBand's transport over UDP
	IWARP Wire = "iwarp" // RDMA over TCP (RFC 5040 to 5044)
)

// DefaultSpin is the default of Options.Spin.
const DefaultSpin = 50 * time.Microsecond
