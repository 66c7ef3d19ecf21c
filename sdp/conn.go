package sdp

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/place"
	"github.com/softrnic/softrnic/sdp/internal/flow"
	"github.com/softrnic/softrnic/sdp/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// Conn is a connection: a net.Conn. Its methods may be called from any
// goroutine; calls in one direction take turns.
type Conn struct {
	stack         *Stack
	cfg           protocol.Config
	local, remote Addr
	cmConn        *cm.Conn
	qp            verbs.QP
	cq            verbs.CQ
	zeroCopy      int // from how many bytes on; never if not positive
	urgentSignal  chan struct{}

	reading, writing            sync.Mutex // held by the call of that direction
	readDeadline, writeDeadline *deadline
	endDeadline                 *deadline // ends with the connection

	mu          sync.Mutex // guards all that follows
	core        *protocol.Core
	flowControl flow.Control
	regions     []region // by sendRegion and so on
	oldRegion   region   // one that a larger one has replaced, while it is in use

	readBuffer int // that SetReadBuffer has asked for, until it is there; 0 for nothing

	// Who serves the connection: a call that waits (progress.go), else events
	// (watch.go).
	polling    bool // a call waits for completions, and handles them for all
	waiters    [numWaitConds]*waiter
	wcs        [64]verbs.WC // whoever pumps or polls has it
	armed      bool         // the queue will tell interrupt, or watch, of a completion
	inHandler  bool         // it is interrupt who looks: what takes long waits
	onIdleList bool         // the patrol has it
	calls      uint64       // of the application, and
	callsSeen  uint64       // at the patrol's last look

	extraPolls int // that are worth it, because the writer is faster than the reader; see look

	// What the last bytes were like that came or went, for zero-copy
	// (direct.go).
	lastZeroCopy bool // they came without a copy
	lastToSink   bool // they went to memory that the peer had offered

	offerRefusals, offersToSkip int // offers in a row that the peer did not want; Writes left that make none

	urgentKnown, urgentAnnounced bool // by urgentSignal
	keepAlive                    keepAlive
	keepAliveTimer               *time.Timer     // of the keepalive
	silence                      silenceDetector // what that knows
	completions                  uint64          // completions so far
	counts                       counts
	meter                        *meter // of MeasureUse; nil if nobody measures

	readShut    bool          // CloseRead was called
	writeShut   bool          // CloseWrite was called
	closed      bool          // Close was called
	discarded   uint64        // bytes that nobody has read before it
	lingerTime  time.Duration // how long it sends on; 0 not at all
	lingerTimer *time.Timer   // ends that; nil before
	isLingering atomic.Bool
	tornDown    bool          // teardown has begun
	done        chan struct{} // closed when nothing is left of it
}

var (
	_ net.Conn      = (*Conn)(nil)
	_ io.ReaderFrom = (*Conn)(nil)
	_ io.WriterTo   = (*Conn)(nil)
)

// LocalAddr is our end: an Addr.
func (c *Conn) LocalAddr() net.Addr {
	if !c.isOpen() {
		return nil
	}
	return c.local
}

// RemoteAddr is the peer's end: an Addr.
func (c *Conn) RemoteAddr() net.Addr {
	if !c.isOpen() {
		return nil
	}
	return c.remote
}

// FlowControl is the flow control of the connection.
func (c *Conn) FlowControl() FlowControl {
	if !c.isOpen() {
		return 0
	}
	return c.flowControl
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

// Read implements net.Conn. A Read of at least the zero-copy threshold takes a
// large Write of the peer straight out of its memory.
func (c *Conn) Read(p []byte) (int, error) {
	if !c.isOpen() {
		return 0, syscall.EINVAL
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enterCall()
	defer c.exitCall()
	n, err := c.read(p)
	return n, c.opError("read", err)
}

func (c *Conn) read(p []byte) (int, error) {
	for {
		switch {
		case c.closed:
			return 0, net.ErrClosed
		case len(p) == 0:
			return 0, nil
		case c.readDeadline.expired():
			return 0, os.ErrDeadlineExceeded
		}
		if !place.Readable(p[:min(len(p), c.core.Buffered())]) {
			return 0, syscall.EFAULT
		}
		if n := c.core.Read(p); n > 0 {
			c.lastZeroCopy = false
			freed := len(c.core.Receives()) > 0
			c.postPending()
			if freed && c.extraPolls > 0 {
				c.pollForWriter()
			}
			return n, nil
		}
		if c.pollCompletions() {
			continue
		}
		switch {
		case c.core.Finished():
			return 0, io.EOF
		case c.core.Err() != nil:
			return 0, c.core.Err()
		case c.core.PeerSourceLen() > 0:
			if n, err := c.readFromSource(p); n > 0 || err != nil {
				return n, err
			}
			continue
		case c.readShut:
			return 0, io.EOF
		case c.shouldOfferSink(p):
			if n, err := c.offerSink(p); n > 0 || err != nil {
				return n, err
			}
			continue
		}
		c.waitFor(waitReadable, c.readDeadline)
	}
}

// Write implements net.Conn. It returns when the send buffer has taken the last
// of p or, if that is large, the peer has read it where it lies.
func (c *Conn) Write(p []byte) (int, error) {
	if !c.isOpen() {
		return 0, syscall.EINVAL
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enterCall()
	defer c.exitCall()
	n, err := c.write(p)
	return n, c.opError("write", err)
}

func (c *Conn) write(p []byte) (n int, err error) {
	direct := c.zeroCopy > 0
	for {
		if n > 0 && n == len(p) && c.core.Err() == nil {
			return n, nil // whatever has happened meanwhile
		}
		if err := c.checkWritable(); err != nil || n == len(p) {
			return n, err
		}
		if n == 0 && !place.Readable(p) {
			return 0, syscall.EFAULT
		}
		c.pollCompletions()
		if direct && len(p)-n >= c.zeroCopy {
			k, err := c.writeDirect(p[n:])
			n += k
			if err != nil {
				return n, err
			}
			// What the peer did not want goes as copies, unless it offers
			// memory of its own.
			direct = n == len(p) || c.lastToSink || c.core.PeerSinkLen() > 0
			continue
		}
		held := c.core.HeldBytes()
		k := c.core.Write(p[n:])
		if n == 0 && k > 0 && held > 0 {
			c.counts.coalesced++
		}
		n += k
		c.postPending()
		if k == 0 {
			c.counts.stalls++
			c.waitFor(waitWritable, c.writeDeadline)
		}
	}
}

// checkWritable is why nothing can be written, nil if something can.
func (c *Conn) checkWritable() error {
	switch {
	case c.closed:
		return net.ErrClosed
	case c.writeDeadline.expired():
		return os.ErrDeadlineExceeded
	case c.writeShut, c.core.Closing():
		return errWriteShut
	}
	return c.core.Err()
}

// CloseWrite ends our half of the stream, as (*net.TCPConn).CloseWrite does: the
// peer reads what was written before, and then io.EOF. A Write that waits returns
// syscall.EPIPE.
func (c *Conn) CloseWrite() error {
	if !c.isOpen() {
		return syscall.EINVAL
	}
	c.mu.Lock()
	if !c.closed && !c.writeShut {
		c.writeShut = true
		c.writeDeadline.wakeAndKeep()
	}
	c.mu.Unlock()
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enterCall()
	defer c.exitCall()
	if c.closed {
		return c.opError("close", net.ErrClosed)
	}
	c.core.CloseWrite()
	c.postPending()
	return c.opError("close", c.core.Err())
}

// CloseRead ends the other half for this end only, as (*net.TCPConn).CloseRead does: Reads
// return what has arrived, and then io.EOF. The peer does not learn of it. A Read that waits
// returns.
func (c *Conn) CloseRead() error {
	if !c.isOpen() {
		return syscall.EINVAL
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.opError("close", net.ErrClosed)
	}
	if !c.readShut {
		c.readShut = true
		c.readDeadline.wakeAndKeep()
	}
	return nil
}
