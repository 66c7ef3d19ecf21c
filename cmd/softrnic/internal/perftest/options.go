package perftest

import (
	"context"
	"io"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// A Verb is the operation of a test.
type Verb uint8

// The verbs.
const (
	Send Verb = iota
	Write
	Read
	Atomic
)

// A Metric is the quantity that a test measures.
type Metric uint8

// The metrics.
const (
	Bandwidth Metric = iota
	Latency
)

// A Test is one of the eight programs.
type Test struct {
	Verb   Verb
	Metric Metric
}

// Tests are the eight programs in perftest's order.
var Tests = []Test{
	{Send, Bandwidth}, {Send, Latency}, {Write, Bandwidth}, {Write, Latency},
	{Read, Bandwidth}, {Read, Latency}, {Atomic, Bandwidth}, {Atomic, Latency},
}

// String returns the program's name without ib_, such as "send_bw".
func (t Test) String() string {
	return [...]string{"send", "write", "read", "atomic"}[t.Verb] + [...]string{"_bw", "_lat"}[t.Metric]
}

// fetches reports whether data moves from the server to the client, so that the server is passive.
func (t Test) fetches() bool { return t.Verb == Read || t.Verb == Atomic }

// roundTrips returns the number of one-way trips between two posts of a latency test.
func (t Test) roundTrips() float64 {
	if t.fetches() {
		return 1
	}
	return 2
}

// An AtomicType is an atomic operation.
type AtomicType string

// The atomic operations, as -A names them.
const (
	FetchAndAdd AtomicType = "FETCH_AND_ADD"
	CmpAndSwap  AtomicType = "CMP_AND_SWAP"
)

// An Output selects the amount of output.
type Output string

// The outputs: the full report, or one number.
const (
	OutputFull        Output = ""
	OutputBandwidth   Output = "bandwidth"
	OutputMessageRate Output = "message_rate"
	OutputLatency     Output = "latency"
)

// Options are the options of perftest, and the device and streams of the run. Comments name the
// flags.
type Options struct {
	Test Test

	// Device, peer and connection.
	Server       string     // host; "" is the server itself
	Port         int        // -p: of TCP, or of the RDMA CM; 0 is any free one, for a server
	IBPort       int        // -i
	GIDIndex     int        // -x
	MTU          verbs.MTU  // -m; 0 is the port's
	SL           int        // -S
	TrafficClass int        // --tclass
	FlowLabel    []uint32   // --flow_label: of each queue pair in turn
	QPTimeout    int        // -u: code of the local ACK timeout
	RetryCount   int        // --retry_count: of connections by RDMA-CM
	TOS          int        // -T: of connections by RDMA-CM; -1 is none
	RDMACM       bool       // -R: the RDMA CM connects, and carries the handshake
	CommRDMACM   bool       // -z: the RDMA CM carries the handshake
	NoVersions   bool       // --dont_xchg_versions
	Bind         netip.Addr // --bind_source_ip: local address of the handshake
	Connection   verbs.QPType

	// Workload.
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
	Payload       []byte        // --payload_file_path: repeated to fill messages
	Validate      bool          // --data_validation: both sides verify received data

	// Output.
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

	// Device is an open device, which Run does not close. If it is nil, Run opens
	// and closes one at the source address of the route to the peer. Port 0 means
	// any port, and the zero AddrPort any free address of the loopback interface.
	Device verbs.Device
	Open   func(at netip.AddrPort) (verbs.Device, error)

	// Counter reads one of the device's counters by the last part of its name
	// in sysfs; nil if there are none.
	Counter func(dev verbs.Device, name string) (value uint64, ok bool)

	Out       io.Writer      // receives the standard output of perftest
	Log       io.Writer      // receives remarks
	Dropped   func(error)    // is called for dropped clients; may be nil
	Listening func(port int) // is called with the port of the server; may be nil

	HandshakeTimeout time.Duration // bounds each step of the handshake
	IdleTimeout      time.Duration // bounds the time without progress in a test

	// Linger keeps the adapter open at the end of write_lat, which ends without a
	// message, so that the peer can retransmit if the last acknowledgement was lost.
	Linger func(context.Context)
}

// Constants and limits of perftest.
const (
	qkey        = 0x11111111
	maxSize     = 1 << 23
	atomicSize  = 8
	largeSize   = 8192 // above which every request is signaled
	ucMaxRx     = 16000
	peakIters   = 20000 // above which the peak is not computed
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

// Defaults returns the defaults of perftest.
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

// lingerForAcks waits for four retransmission timeouts of the peer.
func lingerForAcks(ctx context.Context) {
	select {
	case <-time.After(4 * verbs.AckTimeout(14)):
	case <-ctx.Done():
	}
}

// A Rate limits the rate at which requests are posted (SW of --rate_limit_type).
type Rate struct {
	Limit float64  // --rate_limit; 0 is none
	Units RateUnit // --rate_units
	Burst int      // --burst_size: messages posted at a time; 0 is TxDepth
}

// A RateUnit is a unit of Rate.Limit.
type RateUnit string

// The units.
const (
	RateMega RateUnit = "M" // MiB a second
	RateGiga RateUnit = "g" // Gbit a second
	RatePPS  RateUnit = "p" // messages a second
)

// messagesPerSecond returns the limit in messages of size bytes.
func (r Rate) messagesPerSecond(size int) float64 {
	switch r.Units {
	case RateMega:
		return r.Limit * (1 << 20) / float64(size)
	case RatePPS:
		return r.Limit
	}
	return r.Limit * 1e9 / 8 / float64(size)
}
