package rnic

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/internal/link"
)

// Environment variables that add to Options.
const (
	EnvAddr   = "SOFTRNIC_ADDR"   // addresses to choose from, as ParseAddrs has them: "192.0.2.1", "127.0.0.0/8"
	EnvImpair = "SOFTRNIC_IMPAIR" // faults to inject, as Options.Impair
	EnvLink   = link.EnvVar       // SOFTRNIC_LINK: accelerations to do without
	EnvDebug  = "SOFTRNIC_DEBUG"  // debug endpoint, as Options.Debug: "auto"
	EnvLog    = "SOFTRNIC_LOG"    // least level to log to stderr: off, error, warn, info, debug
)

// Options say how to open a device. The zero value opens one on the loopback
// interface, at the first address of 127.0.0.0/8 whose port 4791 is free.
type Options struct {
	// Addr is the address the device is bound to, and so its GID. Port 0 means
	// 4791. Several devices can share an address by having a port each. An IPv6
	// link-local address needs its interface as zone.
	Addr netip.AddrPort

	// Addrs are several addresses, of which the device takes the first that is
	// free, if Addr names none.
	Addrs Addrs

	// AnyPort lets the system choose the port when Addr or Addrs have none: for
	// programs that tell their peers the port, as an endpoint does.
	AnyPort bool

	// Name is the device's name; "softrnic" and a number unless given.
	Name string

	// Shards is the number of independent engines (socket, lock, timers,
	// service goroutine) among which queue pairs are spread; 0 means 1.
	// More than one needs Linux, where the kernel steers by destination QPN.
	Shards int

	// Spin is how long a blocked waiter looks for packets before it goes to
	// sleep. 0 means DefaultSpin; negative, not at all.
	Spin time.Duration

	// NoService leaves out the service goroutine: nothing happens but in
	// calls of Poll, Wait, Progress and the posting verbs.
	NoService bool

	// NoGSO, NoGRO, NoMMsg and Portable do without parts of the fast path.
	NoGSO, NoGRO, NoMMsg, Portable bool

	// RecvBuffer and SendBuffer are the socket's buffers in bytes; 0 asks for
	// much (8 and 4 MiB), -1 leaves what the system gives.
	RecvBuffer, SendBuffer int

	// Impair injects faults: netem's words and rules that know the protocol,
	// for example "loss 1% delay 2ms seed 7; drop every 2nd ACK". See
	// SetImpair.
	Impair string

	// ICM limits how many queue pairs the device works with at full speed, as
	// the caches of hardware do. The zero value does not.
	ICM ICM

	// Capture writes all packets to this pcapng file (compressed if it ends
	// in .gz or .zst).
	Capture string

	// Logger gets failures that no call returns, of the link, a capture or the debug
	// endpoint (warnings, errors), devices that open and close (information), and
	// asynchronous events and failures of queue pairs, which completions tell, with their
	// last packets (debugging). If it is nil, warnings and errors go to slog's default
	// logger, some of each device; see EnvLog.
	Logger *slog.Logger

	// Debug is where one can look into the device while it runs: see
	// Device.ServeDebug.
	Debug string

	// Conn, Clock and Rand replace the socket, the monotonic clock
	// (nanoseconds) and the source of numbers and keys. The simulation uses
	// them.
	Conn  link.Conn
	Clock func() int64
	Rand  func() uint32
}

// DefaultSpin is how long a waiter spins before it blocks, unless Options say
// otherwise.
const DefaultSpin = 50 * time.Microsecond
