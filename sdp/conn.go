package sdp

import (
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/place"
	"github.com/softrnic/softrnic/internal/progress"
	"github.com/softrnic/softrnic/sdp/internal/flow"
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

	// Service of the connection: by a waiting call (progress.go) or by events (events.go).
	progress   *progress.Engine // a waiting call polls the CQ on behalf of all calls
	waits      [numWaitConds]connWait
	wcs        [64]verbs.WC // for the goroutine that polls
	received   int          // completions in wcs that Block has received
	pollErr    error        // of the CQ, from Block
	armed      bool         // the CQ notifies handleInterrupt or serveEvents
	inHandler  bool         // handleInterrupt runs; slow work is deferred
	onIdleList bool         // the idle poller has the connection
	calls      uint64       // calls of the application
	callsSeen  uint64       // calls at the last round of the idle poller

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
	counts                       counts
	meter                        *meter // of MeasureBufferUse, or nil

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

// Read implements net.Conn. A Read of at least Options.ZeroCopy bytes transfers a large Write of
// the peer without a copy, by an RDMA READ.
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

// Write implements net.Conn. It returns when the send buffer has accepted the last byte of p, or
// when the peer has read p by zero-copy.
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
			return n, nil // even if the connection has been closed meanwhile
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
			// Copy the bytes that the peer refused, unless it offers memory itself.
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

// checkWritable returns the reason why no data can be written, or nil.
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

// CloseWrite closes the local half of the stream, as (*net.TCPConn).CloseWrite does: the peer
// reads the data written before and then io.EOF. A blocked Write returns syscall.EPIPE.
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

// CloseRead closes the reading side locally, as (*net.TCPConn).CloseRead does: Reads return data
// that has arrived, and then io.EOF. The peer is not notified. A blocked Read returns.
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

// An Addr is the address of one side of a connection: the adapter's IP address and a port of
// SDP's own port space.
type Addr struct{ netip.AddrPort }

// Network returns "sdp".
func (Addr) Network() string { return network }

// ReadFrom implements io.ReaderFrom. It reads into its own buffer of 256 KiB.
func (c *Conn) ReadFrom(r io.Reader) (n int64, err error) {
	if !c.isOpen() {
		return 0, syscall.EINVAL
	}
	n, err = io.CopyBuffer(onlyWriter{c}, r, make([]byte, copyBytes))
	return n, c.opError("readfrom", err)
}

// WriteTo implements io.WriterTo. It reads into its own buffer of 256 KiB.
func (c *Conn) WriteTo(w io.Writer) (n int64, err error) {
	if !c.isOpen() {
		return 0, syscall.EINVAL
	}
	n, err = io.CopyBuffer(w, onlyReader{c}, make([]byte, copyBytes))
	return n, c.opError("writeto", err)
}

const copyBytes = 256 << 10

type onlyWriter struct{ io.Writer }
type onlyReader struct{ io.Reader }
