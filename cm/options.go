package cm

import (
	"fmt"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// PortSpace is a space of port numbers.
type PortSpace = mad.PortSpace

// Port spaces. Private data of requests begins with RDMA-CM's header, except
// with peers' to IB that name themselves by InfiniBand's addresses. That of
// requests to SDP is the program's Hello, see package bsdh: there addresses and
// the asking port are read.
const (
	TCP = mad.PortSpaceTCP // connections, the default of Listen and Dial
	UDP = mad.PortSpaceUDP // datagrams, that of ListenUD and DialUD
	IB  = mad.PortSpaceIB
	SDP = mad.PortSpaceSDP
)

// Options say how a Manager works. The zero value is good for most.
type Options struct {
	// ResponseTimeout is the code of the time after which a message without
	// an answer is repeated, ours and our peers': 4.096 us * 2^n. 0 means
	// DefaultResponseTimeout.
	ResponseTimeout uint8

	// Retries is how often a message is repeated at most, up to 15; 0 means
	// 15.
	Retries uint8

	// ServiceTimeout is the code of the time that a peer is asked to wait if
	// a request is not accepted or rejected soon; 0 means 22 (17 s).
	ServiceTimeout uint8

	// MaxConns is the number of connections in any state at a time, 2^18 by
	// default.
	MaxConns int

	// Receives is the number of datagrams that can arrive at a time, 2048 by
	// default, at 296 bytes each.
	Receives int

	// Announce tells every peer that is dialed that we are a softrnic, and the
	// size of our socket's receive buffer, in a field that the standard leaves
	// unused. Without it only peers that are softrnics for sure are told: those
	// on another UDP port than 4791 and those on a loopback address. Who is
	// told tells in return.
	Announce bool

	// Rand replaces the source of ids and packet sequence numbers.
	Rand func() uint32
}

// DefaultResponseTimeout is 0.54 s.
const DefaultResponseTimeout = 17

// defaultCMRetries is the default of Options.Retries, the most that a REQ can say.
const defaultCMRetries = 15

// validate refuses options that no field has room for, and fills in the defaults.
func (o *Options) validate() error {
	for _, f := range []struct {
		name           string
		have, min, max int
	}{
		{"ResponseTimeout", int(o.ResponseTimeout), 0, 31}, {"Retries", int(o.Retries), 0, 15},
		{"ServiceTimeout", int(o.ServiceTimeout), 0, 31}, {"MaxConns", o.MaxConns, 0, 1 << 30}, {"Receives", o.Receives, 0, 1 << 15},
	} {
		if f.have < f.min || f.have > f.max {
			return fmt.Errorf("%w: Options.%s is %d and may be %d to %d", verbs.ErrInvalid, f.name, f.have, f.min, f.max)
		}
	}
	setDefault(&o.ResponseTimeout, DefaultResponseTimeout)
	setDefault(&o.Retries, defaultCMRetries)
	setDefault(&o.Receives, 2048)
	if o.Rand == nil {
		o.Rand = randomUint32
	}
	return nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// ListenOptions say what a Listener takes.
type ListenOptions struct {
	PortSpace PortSpace // TCP unless given

	// Backlog is how many requests may be under way at a time: those that
	// Accept has not returned, and those that are not yet established. A peer
	// gets half of them. Others are dropped, and come again. DefaultBacklog
	// unless given.
	Backlog int

	// NoRC and NoUC reject requests for reliable or unreliable connections.
	NoRC, NoUC bool
}

// DefaultBacklog is large because many may connect at once.
const DefaultBacklog = 8192

// DialOptions say what connection to ask for. QP must be given.
//
// Of ConnectOptions, those with a counterpart at the peer mean: RetryCnt is for
// both ends, RNRRetry for the peer's queue pair (ours is set by the peer),
// Timeout for both ends. Access is remote write, and read and atomic if
// MaxDestRdAtomic is not Zero. MaxRdAtomic and MaxDestRdAtomic are what is asked
// for; the peer may grant less.
type DialOptions struct {
	verbs.ConnectOptions

	QP verbs.QP // RC or UC, in StateReset or StateInit

	// Prepare is called with the queue pair in StateInit, before the peer
	// hears of it, to post receives.
	Prepare func(verbs.QP) error

	PrivateData []byte    // up to 56 bytes; to SDP a Hello, 92 bytes
	UDPPort     uint16    // of the peer's adapter if not 4791
	PortSpace   PortSpace // TCP unless given
	LocalPort   uint16    // that the peer sees; one is chosen unless given, to SDP that of the Hello
}

// AcceptOptions say how to accept a connection.
//
// Of ConnectOptions, RNRRetry is for the peer's queue pair; ours, and the MTU,
// are what the peer asked for. So are RetryCnt, Timeout and the fields of the
// address vector unless they are given. MaxRdAtomic and MaxDestRdAtomic are at
// most what the peer offered.
type AcceptOptions struct {
	verbs.ConnectOptions

	// Prepare is called with the queue pair in StateInit, before the peer can
	// send, to post receives.
	Prepare func(verbs.QP) error

	PrivateData []byte // up to 196 bytes
}
