package udpraw

import "encoding/binary"

// credit is what the sink tells the source: how many packets it has taken out
// of its socket since it was opened, and the number of the last round whose end
// it has seen.
type credit struct{ received, round uint64 }

// creditChannel carries credits from the sink to the source.
type creditChannel interface {
	writeCredit(c credit) error  // the sink's end
	readCredit() (credit, error) // the source's end: the newest, without waiting long
	close() error
}

// datagramCredits carries credits as datagrams over the sockets that carry the
// data the other way, as a transport's acknowledgements travel. Any may be
// lost: they are cumulative.
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
		b := w.buf[n-creditLen:] // the newest of what GRO merged
		w.last = credit{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
	}
	return w.last, nil
}

func (w *datagramCredits) close() error { return nil } // the socket has an owner
