package sdp

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/flow"
	"github.com/softrnic/softrnic/internal/progress"
	"github.com/softrnic/softrnic/sdp/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// A Conn is an SDP connection. It implements net.Conn. Its methods are safe for concurrent use;
// calls in one direction are serialized.
type Conn struct {
	stack         *Stack
	cfg           protocol.Config
	local, remote Addr
	cmConn        *cm.Conn
	qp            verbs.QP
	cq            verbs.CQ
	zeroCopy      int // threshold in bytes; zero-copy is off if not positive
	urgentSignal  chan struct{}

	reading, writing            sync.Mutex // held by the pending call of that direction
	readDeadline, writeDeadline *deadline
	endDeadline                 *deadline // canceled by teardown

	mu          sync.Mutex // guards the following fields
	core        *protocol.Core
	flowControl flow.Control
	regions     []region // indexed by sendRegion, slotsRegion, ringRegion
	oldRegion   region   // replaced by a larger region and still in use

	readBuffer int // requested by SetReadBuffer and not granted; 0 for none

	// Service of the connection: by a waiting call (wait.go) or by events (events.go).
	progress   *progress.Engine // a waiting call polls the CQ on behalf of all calls
	arrived    progress.Completions
	armed      bool   // the CQ notifies handleInterrupt or serveEvents
	inHandler  bool   // handleInterrupt runs; slow work is deferred
	onIdleList bool   // the idle poller has the connection
	calls      uint64 // calls of the application
	callsSeen  uint64 // calls at the last round of the idle poller

	extraPolls int // polls by readers while the writer is faster; see pollForWriter

	// Recent transfers, for the choice of zero-copy (zerocopy.go).
	lastZeroCopy bool // the last received bytes came by zero-copy
	lastToSink   bool // the last sent bytes went to memory offered by the peer

	offerRefusals, offersToSkip int // consecutive refused offers; number of Writes that make no offer

	urgentKnown, urgentAnnounced bool // last state seen by signalUrgent
	keepAlive                    keepAlive
	keepAliveTimer               *time.Timer     // samples for the keepalive
	silence                      silenceDetector // decides when the keepalive sends a probe
	completions                  uint64          // number of completions handled
	stalls, coalesced            uint64          // see Stats
	meter                        *meter          // of MeasureBufferUse, or nil

	readShut    bool          // CloseRead was called
	writeShut   bool          // CloseWrite was called
	closed      bool          // Close was called
	discarded   uint64        // received bytes discarded by Close
	lingerTime  time.Duration // time to send written data after Close; 0 resets the connection
	lingerTimer *time.Timer   // nil before Close
	isLingering atomic.Bool
	tornDown    bool          // teardown has begun
	done        chan struct{} // closed when all resources are released
}

var (
	_ net.Conn      = (*Conn)(nil)
	_ io.ReaderFrom = (*Conn)(nil)
	_ io.WriterTo   = (*Conn)(nil)
)

// Indexes of Conn.regions, in the order of allocation.
const (
	sendRegion = iota
	slotsRegion
	ringRegion
)

// isOpen reports whether Dial or Accept created c. Calls on a nil or zero Conn return
// syscall.EINVAL, as in package net.
func (c *Conn) isOpen() bool { return c != nil && c.stack != nil }

// LocalAddr returns the local Addr.
func (c *Conn) LocalAddr() net.Addr {
	if !c.isOpen() {
		return nil
	}
	return c.local
}

// RemoteAddr returns the peer's Addr.
func (c *Conn) RemoteAddr() net.Addr {
	if !c.isOpen() {
		return nil
	}
	return c.remote
}

// FlowControl returns the flow control mode of the connection.
func (c *Conn) FlowControl() FlowControl {
	if !c.isOpen() {
		return 0
	}
	return FlowControl(c.flowControl)
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	return c.setDeadlines(func() { c.readDeadline.set(t); c.writeDeadline.set(t) })
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	return c.setDeadlines(func() { c.readDeadline.set(t) })
}

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	return c.setDeadlines(func() { c.writeDeadline.set(t) })
}

func (c *Conn) setDeadlines(set func()) error {
	if !c.isOpen() {
		return syscall.EINVAL
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.socketError(net.ErrClosed)
	}
	set()
	return nil
}

// opError wraps err in a *net.OpError with c's addresses, as package net does.
func (c *Conn) opError(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: network, Source: c.local, Addr: c.remote, Err: markReset(err)}
}

// socketError wraps the error of a setter of deadlines or buffers in a *net.OpError with the
// local address only, as package net does.
func (c *Conn) socketError(err error) error {
	if err == nil {
		return nil
	}
	return &net.OpError{Op: "set", Net: network, Addr: c.local, Err: markReset(err)}
}
