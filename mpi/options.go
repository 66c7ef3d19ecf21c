package mpi

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/softrnic/softrnic/internal/environment"
	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/fabric/rdma"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/verbs"
)

// Options configures a rank. The zero value suits most programs. Environment variables set the
// fields that are zero.
type Options struct {
	// Manager is the process manager of the job, by default that of the environment.
	// World.Finalize finalizes it.
	Manager pmi.Manager

	// Net is the transport of messages: RDMA; UD for many ranks, with memory that does not grow
	// with their number; Hybrid for a mix of both; or TCP for comparison. SOFTRNIC_MPI_NET sets
	// it to rdma, ud, hybrid or tcp.
	Net Net

	// RCLimit is the maximum number of peers that a rank connects to with Net Hybrid. It uses
	// datagrams, as UD, to the others. SOFTRNIC_MPI_RC_LIMIT sets it.
	RCLimit int

	// RDMA configures the RDMA transport. SOFTRNIC_MPI_EAGER sets the eager threshold in bytes,
	// SOFTRNIC_MPI_RENDEZVOUS the protocol (read, write or copy), SOFTRNIC_MPI_FAST on or off,
	// SOFTRNIC_MPI_FLOW the flow control (shared, credit, rdma or nic) unless Fast is set here,
	// and SOFTRNIC_MPI_RAILS the number of queue pairs between two ranks.
	RDMA RDMAOptions

	// TCP configures the TCP transport. SOFTRNIC_ADDR sets its Addrs, as it sets an adapter's.
	TCP TCPOptions
	// UD configures the datagram transport. SOFTRNIC_MPI_EAGER sets the eager threshold.
	UD UDOptions

	// OneSided selects the implementation of one-sided operations: the adapter where it can, or
	// messages, for comparison. SOFTRNIC_MPI_ONESIDED sets it to direct or messages.
	OneSided OneSided

	// ConnectAll connects to all ranks in Init instead of on demand. SOFTRNIC_MPI_CONNECT=all
	// sets it.
	ConnectAll bool

	// Algorithms names the algorithms of collectives, by collective: {"alltoall": "bruck"}, with
	// the names of docs/collectives.md. The default algorithm replaces one that cannot do a call.
	// SOFTRNIC_MPI_COLL sets it: "alltoall=bruck,bcast=chain".
	Algorithms map[string]string
	choices    coll.Choices // parsed from Algorithms

	// NoShared makes collectives use messages also among ranks of one node. By default short
	// blocking collectives use shared memory there, regardless of Net. It must be equal at all
	// ranks. SOFTRNIC_MPI_SHARED sets it to on or off.
	NoShared bool

	// Watchdog is the time in one call after which rank 0 queries the state of all ranks and
	// prints a report: which calls wait, for which ranks, and at which lines. If it is 0 the
	// time is one minute, and the report is printed only for deadlocks and mismatched
	// collective calls. Below 0 the watchdog is off. SOFTRNIC_MPI_WATCHDOG sets it to a
	// duration such as 30s, or off.
	Watchdog time.Duration

	// GiveUp is the liveness timeout: a rank that waits for another, or sends to it, treats it
	// as lost when the other process has not responded for this time, at least 1 s and by
	// default 10 s. A process that computes responds; a stopped one does not, so debugging
	// needs a long timeout. SOFTRNIC_MPI_GIVE_UP sets it. RDMA.Connect.AckTimeout, UD.GiveUp and
	// TCP.GiveUp are derived from it unless they are set.
	GiveUp time.Duration

	// Report receives the reports of the watchdog, in a goroutine of its own; a panic ends the
	// process. If Report is nil they go to standard error.
	Report func(text string)

	reportSignal string // signal that requests a report: see SOFTRNIC_MPI_REPORT_SIGNAL

	// Check makes the ranks compare every call before they execute it: collective calls with
	// those of the other ranks, and the datatype of a message with that of its receive. It must
	// be equal at all ranks. It costs one more collective call for each. SOFTRNIC_MPI_CHECK=1
	// sets it.
	Check bool
}

// OneSided selects the implementation of one-sided operations.
type OneSided uint8

// Implementations of one-sided operations.
const (
	Direct   OneSided = iota // RDMA and atomics of the adapter (1SC of the iWARP paper)
	Messages                 // active messages served by the target (R and SR of that paper)
)

// Net is the transport of messages.
type Net uint8

// Transports.
const (
	RDMA Net = iota // reliable connections
	TCP
	UD     // unreliable datagrams over one queue pair
	Hybrid // RDMA to some ranks, UD to the others
)

// transportsFor returns the transports that a job of size ranks uses.
func (o *Options) transportsFor(size int) coll.Transports {
	switch {
	case o.Net == RDMA, o.Net == Hybrid && o.RCLimit >= size:
		return coll.ReliableConnections
	case o.Net == UD, o.Net == Hybrid && o.RCLimit == 0:
		return coll.UnreliableDatagrams
	case o.Net == Hybrid:
		return coll.ReliableConnections | coll.UnreliableDatagrams
	}
	return 0
}

// fillFromEnv sets the zero fields from the environment and from defaults.
func (o *Options) fillFromEnv() error {
	net, err := environment.Word("SOFTRNIC_MPI_NET", "rdma", "ud", "hybrid", "tcp")
	if err != nil {
		return err
	}
	switch net {
	case "tcp":
		o.Net = TCP
	case "ud":
		o.Net = UD
	case "hybrid":
		o.Net = Hybrid
	}
	o.TCP.Addrs = cmp.Or(o.TCP.Addrs, os.Getenv("SOFTRNIC_ADDR"))
	if n, ok, err := environment.Int("SOFTRNIC_MPI_RC_LIMIT", "ranks", 0, math.MaxInt32); err != nil {
		return err
	} else if ok {
		o.RCLimit = n
	}
	if n, ok, err := environment.Int("SOFTRNIC_MPI_EAGER", "bytes", minEager, maxEager); err != nil {
		return err
	} else if ok {
		o.RDMA.Eager, o.UD.Eager = cmp.Or(o.RDMA.Eager, n), cmp.Or(o.UD.Eager, n)
	}
	rendezvous, err := environment.Word("SOFTRNIC_MPI_RENDEZVOUS", "read", "write", "copy")
	if err != nil {
		return err
	}
	switch rendezvous {
	case "write":
		o.RDMA.Rendezvous = RendezvousWrite
	case "copy":
		o.RDMA.Rendezvous = RendezvousCopy
	}
	if err := o.RDMA.fillFlow(); err != nil {
		return err
	}
	if n, ok, err := environment.Int("SOFTRNIC_MPI_RAILS", "queue pairs", 1, rdma.MaxRails); err != nil {
		return err
	} else if ok {
		o.RDMA.Rails = cmp.Or(o.RDMA.Rails, n)
	}
	for _, v := range []struct {
		name, usual, other string
		set                func()
	}{
		{"SOFTRNIC_MPI_ONESIDED", "direct", "messages", func() { o.OneSided = Messages }},
		{"SOFTRNIC_MPI_CONNECT", "demand", "all", func() { o.ConnectAll = true }},
		{"SOFTRNIC_MPI_SHARED", "on", "off", func() { o.NoShared = true }},
		{"SOFTRNIC_MPI_CHECK", "0", "1", func() { o.Check = true }},
	} {
		value, err := environment.Word(v.name, v.usual, v.other)
		if err != nil {
			return err
		}
		if value == v.other {
			v.set()
		}
	}
	if o.reportSignal = os.Getenv("SOFTRNIC_MPI_REPORT_SIGNAL"); !slices.Contains([]string{"", "USR1", "USR2"}, o.reportSignal) {
		return fmt.Errorf("SOFTRNIC_MPI_REPORT_SIGNAL=%s: want USR1 or USR2", o.reportSignal)
	}
	switch v := os.Getenv("SOFTRNIC_MPI_WATCHDOG"); v {
	case "":
	case "off":
		o.Watchdog = -1
	default:
		d, err := time.ParseDuration(v)
		if err != nil || d <= 0 {
			return fmt.Errorf("SOFTRNIC_MPI_WATCHDOG=%s: want a duration such as 30s, or off", v)
		}
		o.Watchdog = d
	}
	giveUp, err := environment.Duration("SOFTRNIC_MPI_GIVE_UP", minGiveUp)
	if err != nil {
		return err
	}
	o.GiveUp = cmp.Or(giveUp, o.GiveUp)
	if err := o.validate(); err != nil {
		return err
	}
	o.fillTimeouts()
	if v := os.Getenv("SOFTRNIC_MPI_COLL"); v != "" && o.Algorithms == nil {
		if o.choices, err = coll.ParseChoices(v); err != nil {
			return fmt.Errorf("SOFTRNIC_MPI_COLL=%s: %w", v, err)
		}
		return nil
	}
	if o.choices, err = coll.NewChoices(o.Algorithms); err != nil {
		return fmt.Errorf("Options.Algorithms: %w", err)
	}
	return nil
}

// fillFlow sets Fast and Flow from the environment. The fast path and a flow control exclude each other:
// SOFTRNIC_MPI_FLOW is a default that Fast in the program overrides, and SOFTRNIC_MPI_FAST=on
// conflicts with a flow control of the environment or of the program.
func (r *RDMAOptions) fillFlow() error {
	flow, err := environment.Word("SOFTRNIC_MPI_FLOW", rdma.FlowNames()...)
	if err != nil {
		return err
	}
	fast, err := environment.Word("SOFTRNIC_MPI_FAST", "off", "on")
	if err != nil {
		return err
	}
	mode := Flow(max(0, slices.Index(rdma.FlowNames(), flow)))
	if fast == "on" {
		switch {
		case r.Flow != FlowShared:
			return fmt.Errorf("SOFTRNIC_MPI_FAST=on: Options.RDMA.Flow is %v, want %v", r.Flow, FlowShared)
		case mode != FlowShared:
			return fmt.Errorf("SOFTRNIC_MPI_FAST=on: SOFTRNIC_MPI_FLOW is %v, want %v", mode, FlowShared)
		}
		r.Fast = true
	}
	if !r.Fast && r.Flow == FlowShared {
		r.Flow = mode
	}
	return nil
}

// commonOptions returns the options that must be equal at all ranks of a node.
func (o *Options) commonOptions() string {
	return fmt.Sprintf("NoShared %t, Check %t", o.NoShared, o.Check)
}

// Options.GiveUp has two parts: the deadlock detector probes a rank at least once in a fifth of
// it, and the fabric waits three quarters of it for the acknowledgement.
const (
	defaultGiveUp = 10 * time.Second
	minGiveUp     = time.Second
	retryTime     = 640 * time.Millisecond // between two attempts to connect over RDMA
)

// fillTimeouts derives the timeouts of the fabrics from GiveUp.
func (o *Options) fillTimeouts() {
	o.GiveUp = cmp.Or(o.GiveUp, defaultGiveUp)
	silence := o.GiveUp * 3 / 4
	o.UD.GiveUp = cmp.Or(o.UD.GiveUp, silence)
	o.TCP.GiveUp = cmp.Or(o.TCP.GiveUp, silence)
	o.RDMA.Retries = cmp.Or(o.RDMA.Retries, min(15, max(1, int(silence/retryTime))))
	if o.RDMA.Connect.AckTimeout == 0 {
		o.RDMA.Connect.AckTimeout = ackTimeout(silence)
	}
}

// ackTimeout returns the greatest verbs.ConnectOptions.AckTimeout with which a peer fails within
// silence. With seven retries, a timeout of 0.27 s takes 7 s, and both double alike.
func ackTimeout(silence time.Duration) time.Duration {
	t, d := verbs.AckTimeout(16), 7*time.Second
	for ; d > silence && t > verbs.AckTimeout(8); t /= 2 {
		d /= 2
	}
	for ; 2*d <= silence && t < verbs.AckTimeout(31); t *= 2 {
		d *= 2
	}
	return t
}
