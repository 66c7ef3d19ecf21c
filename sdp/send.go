package sdp

import (
	"io"
	"net"
	"os"
	"syscall"

	"github.com/softrnic/softrnic/internal/place"
)

// Write implements net.Conn. It returns when the send buffer has accepted the last byte of p, or
// when the peer has read p by zero-copy.
func (c *Conn) Write(p []byte) (int, error) {
	if !c.isOpen() {
		return 0, syscall.EINVAL
	}
	c.lockCall(&c.writing)
	defer c.unlockCall(&c.writing)
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
		c.progress.Poll()
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
			c.coalesced++
		}
		n += k
		c.postPending()
		if k == 0 {
			c.stalls++
			c.waitFor((*writable)(c), c.writeDeadline)
		}
	}
}

// writable is the condition that the send buffer has space.
type writable Conn

// Ready implements progress.Waitable.
func (c *writable) Ready() bool {
	return c.core.Err() != nil || c.closed || c.writeShut || c.core.Writable() || c.core.Closing()
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

// WriteUrgent is like Write with the last byte of p urgent (SDP's out-of-band data, MSG_OOB of
// sockets). The peer is notified at once, even if it does not read; with NIC flow control when
// its ring has space, because no message overtakes data in the adapter. The byte remains in the
// stream, as with SO_OOBINLINE. A later urgent byte replaces an earlier one.
func (c *Conn) WriteUrgent(p []byte) (n int, err error) {
	if !c.isOpen() {
		return 0, syscall.EINVAL
	}
	c.lockCall(&c.writing)
	defer c.unlockCall(&c.writing)
	if err := c.checkWritable(); err != nil {
		return 0, c.opError("write", err)
	}
	for n < len(p) {
		if err := c.checkWritable(); err != nil {
			return n, c.opError("write", err)
		}
		c.progress.Poll()
		k := c.core.SendUrgent(p[n:])
		n += k
		c.postPending()
		if k == 0 {
			c.waitFor((*writable)(c), c.writeDeadline)
		}
	}
	return n, nil
}

// ReadFrom implements io.ReaderFrom. It reads into its own buffer of 256 KiB.
func (c *Conn) ReadFrom(r io.Reader) (n int64, err error) {
	if !c.isOpen() {
		return 0, syscall.EINVAL
	}
	n, err = io.CopyBuffer(onlyWriter{c}, r, make([]byte, copyBytes))
	return n, c.opError("readfrom", err)
}

const copyBytes = 256 << 10

type onlyWriter struct{ io.Writer }
