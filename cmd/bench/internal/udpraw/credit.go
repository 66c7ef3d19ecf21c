package udpraw

import "encoding/binary"

// A credit is the state that the sink reports to the source: the number of packets received
// since the socket was opened, and the last round whose end marker has arrived.
type credit struct{ received, round uint64 }

// A creditChannel carries credits from the sink to the source.
type creditChannel interface {
	writeCredit(c credit) error  // called by the sink
	readCredit() (credit, error) // called by the source; returns the newest credit without blocking for long
	close() error
}

// datagramCredits sends credits as datagrams over the data sockets in the opposite direction,
// like the acknowledgements of a transport. Credits are cumulative, so any of them may be lost.
type datagramCredits struct {
	s    socket
	buf  [64 * creditLen]byte
	last credit
}

const creditLen = 16

func (w *datagramCredits) writeCredit(c credit) error {
	binary.LittleEndian.PutUint64(w.buf[0:], c.received)
	binary.LittleEndian.PutUint64(w.buf[8:], c.round)
	return w.s.sendSegments(w.buf[:creditLen], creditLen)
}

func (w *datagramCredits) readCredit() (credit, error) {
	n, err := w.s.tryReceive(w.buf[:])
	if err != nil {
		return w.last, err
	}
	if n >= creditLen && n%creditLen == 0 {
		b := w.buf[n-creditLen:] // the newest of the credits merged by GRO
		w.last = credit{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
	}
	return w.last, nil
}

func (w *datagramCredits) close() error { return nil } // the socket is closed by its owner
