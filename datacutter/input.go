package datacutter

import (
	"io"
	"iter"
	"time"
)

// Input is the consumer's end of a stream. It belongs to the goroutine that
// runs the filter's Process, or to one at a time.
type Input struct {
	stream *Stream
	from   []Instance   // the copies of the producer
	slots  []chan *link // where their connections come
	links  []*link      // the connections
	acked  bool         // units are acknowledged
	err    error        // sticky

	number int       // of the current work
	open   int       // links on which the current work goes on
	last   *link     // whose unit the filter holds
	first  time.Time // when anything came

	// With several links each has a pump, a goroutine that waits for its
	// frames. A pump that handed over a frame pauses until the frame is done
	// with, and after the end of a work until all links have reached it.
	arrivals chan arrival
	resumes  map[*link]chan struct{} // capacity 1
}

type arrival struct {
	link  *link
	frame frame
	err   error
}

// Next returns the next unit of the work, from any copy of the producer, and
// io.EOF after the last. The units of one copy come in order. The unit is the
// filter's to read and to change until its next call of Next; then the stream
// has it again. It allocates nothing.
func (in *Input) Next() ([]byte, error) {
	if in.err != nil {
		return nil, in.err
	}
	for in.open > 0 {
		l, f, err := in.nextFrame()
		if err != nil {
			return nil, in.failStream(l, err)
		}
		switch f.kind {
		case kindUnit:
			l.work.addUnit(f.payload)
			l.total.addUnit(f.payload)
			in.last = l
			return f.payload, nil
		case kindEnd:
			if err := checkEnd(f.payload, in.number, l.work); err != nil {
				return nil, in.failStream(l, err)
			}
			l.work = Counts{}
			in.open--
		default:
			return nil, in.failStream(l, unexpectedFrame(f.kind, "units"))
		}
	}
	return nil, io.EOF
}

// Units is Next as a loop:
//
//	for unit, err := range w.In("tiles").Units() {
//		if err != nil {
//			return err
//		}
//		...
//	}
func (in *Input) Units() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for {
			unit, err := in.Next()
			if err == io.EOF || !yield(unit, err) || err != nil {
				return
			}
		}
	}
}

// nextFrame gives back the last unit and takes a frame from any link.
func (in *Input) nextFrame() (*link, frame, error) {
	if l := in.last; l != nil {
		in.last = nil
		if in.acked {
			if err := l.writeFrames(ackFrame[:]); err != nil {
				return l, frame{}, l.peerReason(err)
			}
		}
		in.resumeReader(l)
	}
	var a arrival
	if in.arrivals == nil {
		a.link = in.links[0]
		a.frame, a.err = a.link.nextFrame()
	} else {
		a = <-in.arrivals
	}
	if in.first.IsZero() {
		in.first = time.Now()
	}
	return a.link, a.frame, a.err
}

var ackFrame = [frameHeader]byte(appendFrame(nil, kindAck, nil))

func (in *Input) failStream(l *link, err error) error {
	in.err = &StreamError{Stream: in.stream.Name, Peer: l.peer, Err: err}
	return in.err
}

// startReaders makes the pumps, which end with the run.
func (in *Input) startReaders(r *run) {
	if len(in.links) < 2 {
		return
	}
	in.arrivals = make(chan arrival)
	in.resumes = make(map[*link]chan struct{}, len(in.links))
	for _, l := range in.links {
		on := make(chan struct{}, 1)
		in.resumes[l] = on
		r.readers.Go(func() { readFrames(l, on, in.arrivals, r.quit) })
	}
}

func readFrames(l *link, on <-chan struct{}, to chan<- arrival, quit <-chan struct{}) {
	for {
		select {
		case <-on:
		case <-quit:
			return
		}
		f, err := l.nextFrame()
		select {
		case to <- arrival{l, f, err}:
		case <-quit:
			return
		}
		if err != nil {
			return
		}
	}
}

func (in *Input) resumeReader(l *link) {
	if in.resumes != nil {
		in.resumes[l] <- struct{}{}
	}
}

// startWork begins a work.
func (in *Input) startWork(number int) {
	in.number, in.open = number, len(in.links)
	for _, l := range in.links {
		in.resumeReader(l)
	}
}

// skipRest takes what the filter left of a work.
func (in *Input) skipRest() error {
	for _, err := range in.Units() {
		if err != nil {
			return err
		}
	}
	return nil
}

// replyBye takes the producer's bye and answers it, by which the producer knows that
// everything behind this end is done.
func (in *Input) replyBye() error {
	for _, l := range in.links {
		in.resumeReader(l)
	}
	for range in.links {
		l, f, err := in.nextFrame()
		if err == nil && f.kind != kindBye {
			err = unexpectedFrame(f.kind, "bye")
		}
		if err == nil {
			err = l.writeFrames(appendFrame(nil, kindBye, nil))
		}
		if err != nil {
			return in.failStream(l, err)
		}
		in.last = nil
	}
	return nil
}

// waitHangup waits, not for ever, until the producers have hung up: then they have the
// answers, and this host may be gone.
func (in *Input) waitHangup() {
	for _, l := range in.links {
		_ = l.conn.SetReadDeadline(time.Now().Add(l.grace)) // where that fails, so does the read
		_, _ = l.frames.nextFrame()                         // nothing can come
	}
}
