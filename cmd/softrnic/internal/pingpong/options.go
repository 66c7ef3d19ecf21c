package pingpong

import (
	"context"
	"io"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
	"github.com/softrnic/softrnic/verbs"
)

// A Kind selects one of the programs.
type Kind string

// The programs, by the middle of their names.
const (
	RC  Kind = "rc"
	UC  Kind = "uc"
	UD  Kind = "ud"
	SRQ Kind = "srq" // RC with several queue pairs and one shared receive queue
)

// qpType returns the type of the queue pairs.
func (k Kind) qpType() verbs.QPType {
	switch k {
	case UC:
		return verbs.UC
	case UD:
		return verbs.UD
	}
	return verbs.RC
}

// Options are the options of the originals (see their manual pages), and the device and streams of
// the run.
type Options struct {
	Kind     Kind
	Server   string    // host of the server; "" is the server itself
	Port     int       // TCP port of the handshake; 0 is any free one, for a server
	GIDIndex int       // entry of the device's GID table
	IBPort   int       // port of the device
	Size     int       // bytes of a message
	MTU      verbs.MTU // of the path; not for UD
	RxDepth  int       // receives posted at a time
	Iters    int       // messages each way
	SL       int       // service level
	NumQP    int       // SRQ: queue pairs
	Events   bool      // sleep until completions come, instead of polling
	Check    bool      // verify received messages
	Times    bool      // report the times between completions of receives

	// Device is an open device, which Run does not close. If it is nil, Run opens
	// and closes one after the peer has connected, at the source address of the
	// route to the peer, or the zero Addr for the loopback interface.
	Device verbs.Device
	Open   func(at netip.Addr) (verbs.Device, error)

	Out       io.Writer      // receives the output of the original
	Dropped   func(error)    // is called for dropped clients; may be nil
	Listening func(port int) // is called with the port of the server; may be nil

	HandshakeTimeout time.Duration // bounds each step of the handshake
	IdleTimeout      time.Duration // bounds the time without progress in a test

	// Linger keeps the adapter open at the end, so that the peer can retransmit if
	// the last acknowledgement was lost.
	Linger func(context.Context)
}

// Defaults returns the defaults of the originals.
func Defaults(k Kind) Options {
	o := Options{
		Kind: k, Port: 18515, IBPort: 1, Size: 4096, MTU: verbs.MTU1024, RxDepth: 500, Iters: 1000, NumQP: 1,
		HandshakeTimeout: 10 * time.Second, IdleTimeout: 30 * time.Second, Linger: lingerForAcks,
	}
	switch k {
	case UD:
		o.Size = 1024
	case SRQ:
		o.NumQP = 16
	}
	return o
}

// lingerForAcks waits for four retransmission timeouts of the peer.
func lingerForAcks(ctx context.Context) {
	select {
	case <-time.After(4 * ackTimeout):
	case <-ctx.Done():
	}
}

// setDefaults replaces nil writers and functions.
func (o *Options) setDefaults() {
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Dropped == nil {
		o.Dropped = func(error) {}
	}
	if o.Listening == nil {
		o.Listening = func(int) {}
	}
}

// Limits of the options.
const (
	maxRecords = 256 // of a srq handshake
	maxSize    = 1 << 30
	maxDepth   = 1 << 15
)

// validate returns an error for an invalid option.
func (o *Options) validate() error {
	switch {
	case o.Kind != RC && o.Kind != UC && o.Kind != UD && o.Kind != SRQ:
		return option.Errorf("kind", "%q is none of rc, uc, ud, srq", o.Kind)
	case o.Port < 0 || o.Port > 65535:
		return option.Errorf("-p", "TCP port %d: want 1 to 65535", o.Port)
	case o.Port == 0 && o.Server != "":
		return option.Errorf("-p", "a client needs the server's TCP port")
	case o.Size < 1 || o.Size > maxSize:
		return option.Errorf("-s", "messages of %d bytes cannot be; give 1 to %d", o.Size, maxSize)
	case o.MTU.Bytes() == 0:
		return option.Errorf("-m", "the MTU is 256, 512, 1024, 2048 or 4096")
	case o.RxDepth < 1 || o.RxDepth > maxDepth:
		return option.Errorf("-r", "%d receives at a time cannot be; give 1 to %d", o.RxDepth, maxDepth)
	case o.Iters < 1:
		return option.Errorf("-n", "%d messages cannot be exchanged; give 1 or more", o.Iters)
	case o.SL < 0 || o.SL > 15:
		return option.Errorf("-l", "service level %d cannot be; give 0 to 15", o.SL)
	case o.NumQP < 1 || o.NumQP >= maxRecords:
		return option.Errorf("-q", "%d queue pairs cannot be; give 1 to %d", o.NumQP, maxRecords-1)
	case o.NumQP > 1 && o.Kind != SRQ:
		return option.Errorf("-q", "only srq has more than one queue pair")
	case o.NumQP > o.RxDepth:
		return option.Errorf("-r", "%d receives are too few for %d queue pairs; each needs one", o.RxDepth, o.NumQP)
	case o.Device == nil && o.Open == nil:
		return option.Errorf("device", "none given")
	}
	return nil
}
