package sdp

import (
	"io"
	"net"
	"os"
	"syscall"

	"github.com/softrnic/softrnic/internal/place"
)

// Read implements net.Conn. A Read of at least Options.ZeroCopy bytes transfers a large Write of
// the peer without a copy, by an RDMA READ.
func (c *Conn) Read(p []byte) (int, error) {
	if !c.isOpen() {
		return 0, syscall.EINVAL
	}
	c.lockCall(&c.reading)
	defer c.unlockCall(&c.reading)
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
		if c.progress.Poll() {
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
		c.waitReadable(c.readDeadline)
	}
}

// waitReadable waits for data. It first sends data held back for coalescing, unless a Write may
// add more: a request may precede the awaited reply.
func (c *Conn) waitReadable(d *deadline) {
	if c.core.HeldBytes() > 0 && c.writing.TryLock() {
		c.core.Flush()
		c.writing.Unlock()
		c.postPending()
	}
	c.waitFor((*readable)(c), d)
}

// readable is the condition that there is data, buffered or offered, or the end of the stream.
type readable Conn

// Ready implements progress.Waitable.
func (c *readable) Ready() bool {
	return c.core.Err() != nil || c.closed || c.readShut || c.core.Buffered() > 0 || c.core.Finished() || c.core.PeerSourceLen() > 0
}

// Urgent returns the number of unread bytes up to and including the peer's urgent byte, or 0, and
// whether the peer has announced an urgent byte that has not arrived. The urgent byte is the next
// one at 1 (SIOCATMARK of sockets).
func (c *Conn) Urgent() (ahead int, announced bool) {
	if !c.isOpen() {
		return 0, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.progress.Poll()
	return c.core.Urgent()
}

// UrgentSignal returns a channel with capacity 1 that gets an element when the peer announces an
// urgent byte or one arrives (SIGURG of sockets).
func (c *Conn) UrgentSignal() <-chan struct{} {
	if !c.isOpen() {
		return nil
	}
	return c.urgentSignal
}

// WriteTo implements io.WriterTo. It reads into its own buffer of 256 KiB.
func (c *Conn) WriteTo(w io.Writer) (n int64, err error) {
	if !c.isOpen() {
		return 0, syscall.EINVAL
	}
	n, err = io.CopyBuffer(w, onlyReader{c}, make([]byte, copyBytes))
	return n, c.opError("writeto", err)
}

type onlyReader struct{ io.Reader }
