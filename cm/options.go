package cm

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// A PortSpace is a space of port numbers (enum rdma_port_space).
type PortSpace = mad.PortSpace

// Port spaces. The private data of a request begins with RDMA-CM's header, except in IB if the
// peer identifies itself by InfiniBand addresses. For SDP the private data is the application's
// Hello (package bsdh), which carries the addresses and the source port.
const (
	TCP = mad.PortSpaceTCP // connections; default of Listen and Dial
	UDP = mad.PortSpaceUDP // datagrams; default of ListenUD and DialUD
	IB  = mad.PortSpaceIB
	SDP = mad.PortSpaceSDP
)

// Options configure a Manager. The zero value has good defaults.
type Options struct {
	// ResponseTimeout is the retransmission timeout of this side and of its peers, rounded up to
	// 4.096 us * 2^n, with n up to 31. The default is DefaultResponseTimeout.
	ResponseTimeout time.Duration

	// Retries is the maximum number of retransmissions of a message, up to 15, the default. -1 is
	// none.
	Retries int

	// ServiceTimeout is the time that an MRA requests from the peer while the application has not
	// replied, rounded as ResponseTimeout. The default is DefaultServiceTimeout. Peers with this
	// package grant 69 s at most.
	ServiceTimeout time.Duration

	// MaxConns is the maximum number of connections in any state. The default is 2^18.
	MaxConns int

	// Receives is the number of posted receives, the largest burst of datagrams. The default is
	// 2048, at 296 bytes each.
	Receives int

	// Announce makes Dial identify this side as a softrnic and send its socket's receive buffer
	// size to every peer, in a REQ field that the standard leaves unused. By default only peers
	// that are known to be softrnics get it: those on a UDP port other than 4791 and those on a
	// loopback address. A peer that gets the field replies with its own.
	Announce bool

	// Rand is the source of communication IDs and starting PSNs. The default is crypto/rand.
	Rand func() uint32
}

// Defaults of Options.
const (
	DefaultResponseTimeout = 4096 << 17 * time.Nanosecond // 0.54 s
	DefaultServiceTimeout  = 4096 << 22 * time.Nanosecond // 17 s
)

// defaultCMRetries is the default of Options.Retries, the maximum of the REQ's 4-bit field.
const defaultCMRetries = 15

// maxTimeout is the largest timeout of a 5-bit code, 2.4 hours.
const maxTimeout = 4096 << 31 * time.Nanosecond

// validate returns an error for options out of range and sets the defaults.
func (o *Options) validate() error {
	for _, f := range []struct {
		name           string
		have, min, max int
	}{{"Retries", o.Retries, -1, defaultCMRetries}, {"MaxConns", o.MaxConns, 0, 1 << 30}, {"Receives", o.Receives, 0, 1 << 15}} {
		if f.have < f.min || f.have > f.max {
			return fmt.Errorf("%w: Options.%s: %d out of range [%d, %d]", verbs.ErrInvalid, f.name, f.have, f.min, f.max)
		}
	}
	for _, f := range []struct {
		name string
		have time.Duration
	}{{"ResponseTimeout", o.ResponseTimeout}, {"ServiceTimeout", o.ServiceTimeout}} {
		if f.have < 0 || f.have > maxTimeout {
			return fmt.Errorf("%w: Options.%s: %v out of range [0, %v]", verbs.ErrInvalid, f.name, f.have, maxTimeout)
		}
	}
	setDefault(&o.ResponseTimeout, DefaultResponseTimeout)
	setDefault(&o.ServiceTimeout, DefaultServiceTimeout)
	o.Retries = max(cmp.Or(o.Retries, defaultCMRetries), 0)
	setDefault(&o.Receives, 2048)
	if o.Rand == nil {
		o.Rand = randomUint32
	}
	return nil
}

// timeoutCode returns the code of the shortest timeout that is at least d, 0 for 0.
func timeoutCode(d time.Duration) uint8 { return mad.TimeoutCode(int64(d)) }

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// ListenOptions configure a Listener.
type ListenOptions struct {
	PortSpace PortSpace // default TCP

	// Backlog is the maximum number of half-open connections: those that Accept has not returned
	// and those that are not yet established. One peer may use half of them. Requests beyond it
	// are dropped, and their peers retransmit. The default is DefaultBacklog, the maximum 2^20.
	Backlog int

	// NoRC and NoUC reject requests for reliable or unreliable connections. Only one of them may
	// be set.
	NoRC, NoUC bool
}

// maxBacklog bounds ListenOptions.Backlog.
const maxBacklog = 1 << 20

// validate returns an error for options out of range and sets the defaults, that of PortSpace to
// space.
func (o *ListenOptions) validate(space PortSpace) error {
	setDefault(&o.PortSpace, space)
	if err := checkPortSpace("ListenOptions", o.PortSpace); err != nil {
		return err
	}
	if o.Backlog < 0 || o.Backlog > maxBacklog {
		return fmt.Errorf("%w: ListenOptions.Backlog: %d out of range [0, %d]", verbs.ErrInvalid, o.Backlog, maxBacklog)
	}
	setDefault(&o.Backlog, DefaultBacklog)
	return nil
}

// checkPortSpace returns an error if the field PortSpace of the options of the given type is not
// one of RDMA-CM's.
func checkPortSpace(options string, s PortSpace) error {
	if slices.Contains([]PortSpace{TCP, UDP, IB, SDP, mad.PortSpaceIPoIB}, s) {
		return nil
	}
	return fmt.Errorf("%w: %s.PortSpace: %#04x, want TCP, UDP, IB or SDP", verbs.ErrInvalid, options, uint16(s))
}

// DefaultBacklog is the default of ListenOptions.Backlog, enough for thousands of ranks that
// connect at once.
const DefaultBacklog = 8192

// DialOptions configure a connection to dial.
//
// ConnectOptions with a counterpart at the peer apply as follows: Retries and AckTimeout to both
// sides, RNRRetries to the peer's queue pair (the REP sets the local one). The default of Access
// is remote write, plus read and atomic unless MaxDestRdAtomic is -1. MaxRdAtomic and
// MaxDestRdAtomic are requests; the peer may grant less.
type DialOptions struct {
	verbs.ConnectOptions

	// Receives are posted before the REQ is sent, so that the peer's first message finds a
	// receive.
	Receives []verbs.RecvWR

	// Prepare is called with the queue pair in StateInit, after Receives are posted and before
	// the REQ is sent. It may, for example, post to a shared receive queue.
	Prepare func(verbs.QP) error

	PrivateData []byte    // up to 56 bytes; for SDP a Hello of 92 bytes
	UDPPort     uint16    // of the peer's adapter; default 4791
	PortSpace   PortSpace // default TCP
	LocalPort   uint16    // source port in the REQ; default an ephemeral one, for SDP that of the Hello
}

// AcceptOptions configure a connection to accept.
//
// Of ConnectOptions, RNRRetries applies to the peer's queue pair; the REQ sets the local one and
// the MTU. The REQ also sets Retries, AckTimeout and the address vector unless they are given here.
// MaxRdAtomic and MaxDestRdAtomic are bounded by the values in the REQ.
type AcceptOptions struct {
	verbs.ConnectOptions

	// Receives are posted before the REP is sent, so that the peer's first message finds a
	// receive.
	Receives []verbs.RecvWR

	// Prepare is called with the queue pair in StateInit, after Receives are posted and before
	// the REP is sent.
	Prepare func(verbs.QP) error

	PrivateData []byte // up to 196 bytes
}

// randomUint32 draws from the system's source.
func randomUint32() uint32 {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return binary.NativeEndian.Uint32(b[:])
}
