package tcp

import (
	"net"

	"github.com/softrnic/softrnic/internal/racesync"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// connSocket is a socket without a poller.
type connSocket struct {
	l       *link
	conn    *net.TCPConn
	writing bool // the goroutine that writes is running
}

// startSocket returns the socket of a connection and starts to read from it.
func startSocket(conn *net.TCPConn, l *link) socket {
	s := &connSocket{l: l, conn: conn}
	l.f.work.Go(s.readLoop)
	return s
}

func (s *connSocket) readOnce(b []byte) (int, error) { return s.conn.Read(b) }

func (s *connSocket) writeSome(list [][]byte) (int, error) {
	racesync.Release()
	return tryWrite(s.conn, list)
}

func (s *connSocket) awaitWritable(on bool) {
	if on && !s.writing {
		s.writing = true
		s.l.f.work.Go(s.writeLoop)
	}
}

func (s *connSocket) endConn() { _ = s.conn.Close() }

func (s *connSocket) closeFD() error { return s.conn.Close() }

// readLoop reads until the connection ends. The bytes of a packet that is not complete
// are between two reads at the beginning of the buffer.
func (s *connSocket) readLoop() {
	in := input{b: make([]byte, s.l.f.inputSize())}
	for {
		n, err := s.readOnce(in.freeSpace())
		racesync.Acquire()
		ended := false
		s.l.f.host.Do(func(c *protocol.Core) {
			s.l.handleRead(&in, n, err)
			ended = s.l.failed
		})
		if err != nil || ended {
			return
		}
	}
}

// writeLoop writes the send queue and the current RDMAWrite until both are empty.
func (s *connSocket) writeLoop() {
	var out []byte
	for more := true; ; {
		s.l.f.host.Do(func(*protocol.Core) {
			if len(s.l.queue.pendingBytes()) == 0 {
				s.l.continueWriting()
			}
			out = s.l.queue.swapMemory(out)
			s.l.blocked = s.l.blocked || len(out) > 0
			more = s.l.blocked
			s.writing = more
			s.l.resumeCore()
		})
		if !more {
			return
		}
		racesync.Release()
		if _, err := s.conn.Write(out); err != nil {
			s.l.f.host.Do(func(*protocol.Core) { s.l.f.failLink(s.l, err) })
			return
		}
	}
}
