package perftest

import (
	"context"
	"io"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// AtomicType is which atomic operation.
type AtomicType string

// The atomic operations, as -A names them.
const (
	FetchAndAdd AtomicType = "FETCH_AND_ADD"
	CmpAndSwap  AtomicType = "CMP_AND_SWAP"
)

// Output is how much is written.
type Output string

// Everything, or one number.
const (
	OutputFull        Output = ""
	OutputBandwidth   Output = "bandwidth"
	OutputMessageRate Output = "message_rate"
	OutputLatency     Output = "latency"
)

// Options are those of perftest, and where to run. Comments give the flags.
type Options struct {
	Test Test

	// Where.
	Server       string     // host; "" is the server itself
	Port         int        // -p: of TCP, or of the RDMA CM; 0 is any free one, for a server
	IBPort       int        // -i
	GIDIndex     int        // -x
	MTU          verbs.MTU  // -m; 0 is the port's
	SL           int        // -S
	TrafficClass int        // --tclass
	FlowLabel    []uint32   // --flow_label: of each queue pair in turn
	QPTimeout    int        // -u: code of the local ACK timeout
	RetryCount   int        // --retry_count: of what the RDMA CM connects
	TOS          int        // -T: of what the RDMA CM connects; -1 is none
	RDMACM       bool       // -R: the RDMA CM connects, and carries the handshake
	CommRDMACM   bool       // -z: the RDMA CM carries the handshake
	NoVersions   bool       // --dont_xchg_versions
	Bind         netip.Addr // --bind_source_ip: our end of the handshake
	Connection   verbs.QPType

	// What.
	Size          int           // -s: bytes of a message
	All           bool          // -a: sizes from 2 to 2^23
	Iters         int           // -n: messages a queue pair
	Duration      time.Duration // -D: instead of Iters; 0 is not at all
	Margin        time.Duration // -f: at either end of Duration; -1 is a quarter of it
	Infinite      bool          // --run_infinitely: a report every Duration
	Bidirectional bool          // -b
	Reversed      bool          // --reversed: the server sends
	QPs           int           // -q
	TxDepth       int           // -t: requests outstanding
	RxDepth       int           // -r: receives posted; 0 is the default
	PostList      int           // -l: requests posted at once
	RecvPostList  int           // --recv_post_list
	CQMod         int           // -Q: every so many requests one is signaled; 0 is the default
	PollBatch     int           // --cqe_poll: completions taken at once
	Inline        int           // -I: messages up to so many bytes go inline; -1 is the default
	OutReads      int           // -o: reads and atomics outstanding; 0 is the device's most
	Atomic        AtomicType    // -A
	Events        bool          // -e: sleep until completions come
	UseSRQ        bool          // --use-srq
	MRPerQP       bool          // --mr_per_qp
	WarmUp        bool          // --perform_warm_up
	WithImm       bool          // --write_with_imm, --send_with_imm
	Gap           time.Duration // --latency_gap: before each post
	Rate          Rate          // --rate_limit and its sisters
	Payload       []byte        // --payload_file_path: what messages consist of, again and again
	Validate      bool          // --data_validation: both sides compare what came

	// What is written.
	NoPeak     bool     // -N
	Gbits      bool     // --report_gbits
	ReportBoth bool     // --report-both
	Output     Output   // --output
	Cycles     bool     // -C
	Histogram  bool     // -H
	Unsorted   bool     // -U
	CPUUtil    bool     // --cpu_util
	Counters   []string // -W
	LimitBW    float64  // -w: 0 is none
	LimitRate  float64  // -y: 0 is none

	// Device is an open device, which stays open. If it is nil, Open is called
	// for one at our address on the way to the peer. Port 0 means any port, and
	// the zero AddrPort any free address of the loopback interface. Run closes
	// the device.
	Device verbs.Device
	Open   func(at netip.AddrPort) (verbs.Device, error)

	// Counter reads one of the device's counters by the last part of its name
	// in sysfs; nil if there are none.
	Counter func(dev verbs.Device, name string) (value uint64, ok bool)

	Out       io.Writer      // gets what perftest writes to stdout
	Log       io.Writer      // gets its remarks
	Dropped   func(error)    // hears of clients that were sent away; may be nil
	Listening func(port int) // hears where the server waits; may be nil

	HandshakeTimeout time.Duration // for each step of the handshake
	IdleTimeout      time.Duration // without a message after which no more are expected

	// Linger keeps the adapter up at the end of write_lat, which has no
	// handshake there, for a peer who has missed the last acknowledgement.
	Linger func(context.Context)
}

// What perftest uses.
const (
	qkey        = 0x11111111
	maxSize     = 1 << 23
	atomicSize  = 8
	largeSize   = 8192 // above which every request is signaled
	ucMaxRx     = 16000
	peakIters   = 20000 // above which no peak is looked for
	maxIters    = 100000000
	maxDepth    = 15000
	maxRx       = 16384
	maxQPs      = 16384
	maxCQMod    = 1024
	maxInline   = 912
	grhLen      = 40
	hops        = 0xff
	defaultRx   = 512
	defaultCQM  = 100
	addend      = 1 // of fetch-and-add
	unsetMargin = -1
)

// Defaults are those of perftest.
func Defaults(t Test) Options {
	o := Options{
		Test: t, Port: 18515, IBPort: 1, QPTimeout: 14, RetryCount: 7, TOS: -1, Connection: verbs.RC,
		Size: 65536, Iters: 1000, Margin: unsetMargin, QPs: 1, TxDepth: 128, PostList: 1, RecvPostList: 1, PollBatch: 16,
		Inline: -1, Atomic: FetchAndAdd,
		HandshakeTimeout: 30 * time.Second, IdleTimeout: time.Minute, Linger: lingerForAcks,
	}
	if t.Metric == Latency {
		o.Size, o.TxDepth = 2, 1
	}
	if t == (Test{Write, Bandwidth}) {
		o.Iters = 5000
	}
	if t.Verb == Atomic {
		o.Size = atomicSize
	}
	return o
}

// lingerForAcks stays for four repetitions of the peer's.
func lingerForAcks(ctx context.Context) {
	select {
	case <-time.After(4 * verbs.AckTimeout(14)):
	case <-ctx.Done():
	}
}

// Rate limits how fast requests are posted (SW of --rate_limit_type).
type Rate struct {
	Limit float64  // --rate_limit; 0 is none
	Units RateUnit // --rate_units
	Burst int      // --burst_size: messages posted at a time; 0 is TxDepth
}

// RateUnit is a unit of Rate.Limit.
type RateUnit string

// The units.
const (
	RateMega RateUnit = "M" // MiB a second
	RateGiga RateUnit = "g" // Gbit a second
	RatePPS  RateUnit = "p" // messages a second
)

// messagesPerSecond is the limit in messages of so many bytes.
func (r Rate) messagesPerSecond(size int) float64 {
	switch r.Units {
	case RateMega:
		return r.Limit * (1 << 20) / float64(size)
	case RatePPS:
		return r.Limit
	}
	return r.Limit * 1e9 / 8 / float64(size)
}
