package datacutter

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// pipeSize is the capacity of one direction of a pipe in bytes.
const pipeSize = 64 << 10

// newPipe returns the two ends of an in-memory connection. Unlike net.Pipe it is buffered, as a socket is,
// and data written before Close can still be read.
func newPipe() (net.Conn, net.Conn) {
	a, b := newFlow(), newFlow()
	return &pipeEnd{in: a, out: b}, &pipeEnd{in: b, out: a}
}

// pipeEnd is an end of a pipe.
type pipeEnd struct {
	in, out *flow
}

func (p *pipeEnd) Read(b []byte) (int, error)  { return p.in.read(b) }
func (p *pipeEnd) Write(b []byte) (int, error) { return p.out.write(b) }

func (p *pipeEnd) Close() error {
	p.in.close(&p.in.readClosed)
	p.out.close(&p.out.writeClosed)
	return nil
}

func (p *pipeEnd) LocalAddr() net.Addr  { return pipeAddr{} }
func (p *pipeEnd) RemoteAddr() net.Addr { return pipeAddr{} }

func (p *pipeEnd) SetDeadline(t time.Time) error {
	p.in.setDeadline(&p.in.reader, t)
	p.out.setDeadline(&p.out.writer, t)
	return nil
}

func (p *pipeEnd) SetReadDeadline(t time.Time) error {
	p.in.setDeadline(&p.in.reader, t)
	return nil
}

func (p *pipeEnd) SetWriteDeadline(t time.Time) error {
	p.out.setDeadline(&p.out.writer, t)
	return nil
}

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

// flow is one direction of a pipe: a ring of bytes.
type flow struct {
	mu             sync.Mutex
	changed        sync.Cond
	ring           []byte // allocated by the first write
	start, n       int
	writeClosed    bool // the writer has closed
	readClosed     bool // the reader has closed
	reader, writer deadline
}

// deadline is the deadline of one side.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) hasPassed() bool { return !d.at.IsZero() && time.Until(d.at) <= 0 }

func newFlow() *flow {
	f := &flow{}
	f.changed.L = &f.mu
	return f
}

func (f *flow) read(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		switch {
		case f.readClosed:
			return 0, io.ErrClosedPipe
		case f.reader.hasPassed():
			return 0, os.ErrDeadlineExceeded
		case len(b) == 0:
			return 0, nil
		case f.n > 0:
			n := copy(b, f.ring[f.start:min(f.start+f.n, len(f.ring))])
			n += copy(b[n:], f.ring[:f.n-n])
			f.start, f.n = (f.start+n)%len(f.ring), f.n-n
			f.changed.Broadcast()
			return n, nil
		case f.writeClosed:
			return 0, io.EOF
		}
		f.changed.Wait()
	}
}

func (f *flow) write(b []byte) (done int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ring == nil {
		f.ring = make([]byte, pipeSize)
	}
	for {
		switch {
		case f.readClosed, f.writeClosed:
			return done, io.ErrClosedPipe
		case f.writer.hasPassed():
			return done, os.ErrDeadlineExceeded
		case done == len(b):
			return done, nil
		case f.n < len(f.ring):
			end := (f.start + f.n) % len(f.ring)
			n := copy(f.ring[end:min(end+len(f.ring)-f.n, len(f.ring))], b[done:])
			f.n, done = f.n+n, done+n
			f.changed.Broadcast()
			continue
		}
		f.changed.Wait()
	}
}

func (f *flow) close(side *bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*side = true
	f.reader.setTimer(time.Time{}, nil)
	f.writer.setTimer(time.Time{}, nil)
	f.changed.Broadcast()
}

func (f *flow) setDeadline(d *deadline, t time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d.setTimer(t, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.changed.Broadcast()
	})
	f.changed.Broadcast()
}

// setTimer replaces the deadline; f is called when it expires.
func (d *deadline) setTimer(t time.Time, f func()) {
	d.at = t
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if wait := time.Until(t); !t.IsZero() && wait > 0 {
		d.timer = time.AfterFunc(wait, f)
	}
}
