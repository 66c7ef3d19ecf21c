package sdp

import "io"

// ReadFrom implements io.ReaderFrom by reading into a buffer of its own.
func (c *Conn) ReadFrom(r io.Reader) (n int64, err error) {
	return io.CopyBuffer(onlyWriter{c}, r, make([]byte, copyBytes))
}

// WriteTo implements io.WriterTo.
func (c *Conn) WriteTo(w io.Writer) (n int64, err error) {
	return io.CopyBuffer(w, onlyReader{c}, make([]byte, copyBytes))
}

const copyBytes = 256 << 10

type onlyWriter struct{ io.Writer }
type onlyReader struct{ io.Reader }
