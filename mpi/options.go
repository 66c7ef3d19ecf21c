package mpi

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/fabric/rdma"
	"github.com/softrnic/softrnic/mpi/internal/fabric/tcp"
	"github.com/softrnic/softrnic/mpi/internal/fabric/ud"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/pmi"
)

// Options of each transport, and the algorithm of each collective.
type (
	RDMAOptions = rdma.Options
	UDOptions   = ud.Options
	TCPOptions  = tcp.Options
	Algorithms  = coll.Choices
)

// Alltoall is the all-to-all exchange in Algorithms.
const Alltoall = coll.Alltoall

// Options say how a rank works. The zero value is good for most; variables of
// the environment fill in what is not set.
type Options struct {
	// Manager is the job's process manager; that of the environment unless
	// given. Finalize finalizes it.
	Manager pmi.Manager

	// Net is what carries messages: RDMA, UD for many ranks, whose memory does
	// not grow with them, Hybrid for something in between, or TCP for comparison.
	// SOFTRNIC_MPI_NET sets it, to rdma, ud, hybrid or tcp.
	Net Net

	// RCLimit is how many ranks a rank is connected with at most, of Hybrid. With
	// others it talks as with UD. SOFTRNIC_MPI_RC_LIMIT sets it.
	RCLimit int

	// RDMA says how ranks talk. SOFTRNIC_MPI_EAGER sets the longest eager
	// message in bytes, SOFTRNIC_MPI_RENDEZVOUS read, write or copy,
	// SOFTRNIC_MPI_FAST on or off, SOFTRNIC_MPI_RAILS how many queue pairs
	// there are between two ranks.
	RDMA RDMAOptions

	// TCP is the same, of TCP. Its Addrs are those of SOFTRNIC_ADDR unless given, as an
	// adapter's are.
	TCP TCPOptions
	UD  UDOptions // and of UD, where SOFTRNIC_MPI_EAGER counts as well

	// OneSided says what carries out operations on windows: the adapter where
	// it can, or messages, for comparison. SOFTRNIC_MPI_ONESIDED sets it, to
	// direct or messages.
	OneSided OneSided

	// ConnectAll makes the connections to all ranks at once instead of when
	// they are needed. SOFTRNIC_MPI_CONNECT=all does, too.
	ConnectAll bool

	// Algorithms chooses those of collectives. SOFTRNIC_MPI_COLL does, too:
	// "alltoall=bruck,bcast=chain".
	Algorithms Algorithms

	// NoShared has collectives use messages only, also among ranks that could share
	// memory: else short ones that block do not use the Net there, whatever it is. It has
	// to be the same at all ranks. SOFTRNIC_MPI_SHARED sets it, to on or off.
	NoShared bool

	// Watchdog says when a call has waited so long that all ranks are asked what
	// they do: rank 0 prints who waits for whom, and where. Unless given it is a
	// minute, and only what cannot end well is printed: ranks that wait for one
	// another, collective calls that do not belong together. Below 0 there is none.
	// SOFTRNIC_MPI_WATCHDOG sets it, to a time such as 30s, or off.
	Watchdog time.Duration

	// GiveUp is the time without a sign of life of the process of a rank, to a rank that
	// waits for it or sends to it, until it is lost: 10 s unless given. A program that
	// computes gives such signs, and one that is stopped does not; under a debugger it
	// should be long. SOFTRNIC_MPI_GIVE_UP sets it. RDMA.Connect.Timeout, UD.GiveUp and
	// TCP.GiveUp are chosen to match unless given.
	GiveUp time.Duration

	// Report is given what the watchdog has to say. Unless given that goes to
	// standard error.
	Report func(text string)

	reportSignal string // that asks for a report: see SOFTRNIC_MPI_REPORT_SIGNAL

	// Check has all calls compared before they are done: collective ones with
	// those of the other ranks, and the elements of a message with those of its
	// receive. It has to be the same at all ranks, and costs a collective call
	// more for each. SOFTRNIC_MPI_CHECK=1 does, too.
	Check bool
}

// OneSided says what carries out operations on windows.
type OneSided uint8

// The ways.
const (
	Direct   OneSided = iota // the adapter: RDMA and atomics (1SC of the iWARP paper)
	Messages                 // the target, when packets and messages come (its R and SR)
)

// Net is what carries messages.
type Net uint8

// The nets.
const (
	RDMA Net = iota // reliable connections
	TCP
	UD     // datagrams, by one queue pair
	Hybrid // RDMA with some ranks, UD with the others
)

// transports is what messages of a job of so many ranks travel by.
func (o *Options) transports(size int) coll.Transports {
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

func (o *Options) fillFromEnv() error {
	switch v := os.Getenv("SOFTRNIC_MPI_NET"); strings.ToLower(v) {
	case "", "rdma":
	case "tcp":
		o.Net = TCP
	case "ud":
		o.Net = UD
	case "hybrid":
		o.Net = Hybrid
	default:
		return fmt.Errorf("SOFTRNIC_MPI_NET=%s: it takes rdma, ud, hybrid or tcp", v)
	}
	o.TCP.Addrs = cmp.Or(o.TCP.Addrs, os.Getenv("SOFTRNIC_ADDR"))
	if v := os.Getenv("SOFTRNIC_MPI_RC_LIMIT"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return fmt.Errorf("SOFTRNIC_MPI_RC_LIMIT=%s: it takes a number of ranks", v)
		}
		o.RCLimit = n
	}
	if o.RCLimit < 0 {
		return fmt.Errorf("an RCLimit of %d ranks", o.RCLimit)
	}
	if v := os.Getenv("SOFTRNIC_MPI_EAGER"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 64 || n > 1<<20 {
			return fmt.Errorf("SOFTRNIC_MPI_EAGER=%s: it takes a number of bytes from 64 to 1048576", v)
		}
		o.RDMA.Eager, o.UD.Eager = cmp.Or(o.RDMA.Eager, n), cmp.Or(o.UD.Eager, n)
	}
	switch v := os.Getenv("SOFTRNIC_MPI_RENDEZVOUS"); strings.ToLower(v) {
	case "", "read":
	case "write":
		o.RDMA.Rendezvous = protocol.RendezvousWrite
	case "copy":
		o.RDMA.Rendezvous = protocol.RendezvousCopy
	default:
		return fmt.Errorf("SOFTRNIC_MPI_RENDEZVOUS=%s: it takes read, write or copy", v)
	}
	if v := os.Getenv("SOFTRNIC_MPI_RAILS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > rdma.MaxRails {
			return fmt.Errorf("SOFTRNIC_MPI_RAILS=%s: it takes a number of queue pairs from 1 to %d", v, rdma.MaxRails)
		}
		o.RDMA.Rails = cmp.Or(o.RDMA.Rails, n)
	}
	for _, v := range []struct {
		name, usual, other string
		set                func()
	}{
		{"SOFTRNIC_MPI_FAST", "off", "on", func() { o.RDMA.Fast = true }},
		{"SOFTRNIC_MPI_ONESIDED", "direct", "messages", func() { o.OneSided = Messages }},
		{"SOFTRNIC_MPI_CONNECT", "demand", "all", func() { o.ConnectAll = true }},
		{"SOFTRNIC_MPI_SHARED", "on", "off", func() { o.NoShared = true }},
		{"SOFTRNIC_MPI_CHECK", "0", "1", func() { o.Check = true }},
	} {
		switch value := os.Getenv(v.name); strings.ToLower(value) {
		case "", v.usual:
		case v.other:
			v.set()
		default:
			return fmt.Errorf("%s=%s: it takes %s or %s", v.name, value, v.usual, v.other)
		}
	}
	if o.reportSignal = os.Getenv("SOFTRNIC_MPI_REPORT_SIGNAL"); !slices.Contains([]string{"", "USR1", "USR2"}, o.reportSignal) {
		return fmt.Errorf("SOFTRNIC_MPI_REPORT_SIGNAL=%s: it takes USR1 or USR2", o.reportSignal)
	}
	switch v := os.Getenv("SOFTRNIC_MPI_WATCHDOG"); v {
	case "":
	case "off":
		o.Watchdog = -1
	default:
		d, err := time.ParseDuration(v)
		if err != nil || d <= 0 {
			return fmt.Errorf("SOFTRNIC_MPI_WATCHDOG=%s: it takes a time such as 30s, or off", v)
		}
		o.Watchdog = d
	}
	if v := os.Getenv("SOFTRNIC_MPI_GIVE_UP"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil || d < minGiveUp {
			return fmt.Errorf("SOFTRNIC_MPI_GIVE_UP=%s: it takes a time such as 30s, %v at least", v, minGiveUp)
		}
		o.GiveUp = d
	}
	o.fillTimeouts()
	if v := os.Getenv("SOFTRNIC_MPI_COLL"); v != "" && o.Algorithms == nil {
		var err error
		if o.Algorithms, err = coll.ParseChoices(v); err != nil {
			return fmt.Errorf("SOFTRNIC_MPI_COLL=%s: %w", v, err)
		}
	}
	return nil
}
