package sdp

import (
	"io"
	"syscall"
)

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
