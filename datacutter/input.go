package datacutter

import (
	"io"
	"iter"
	"time"
)

// Input is the consumer's end of a stream. It must not be used concurrently. Usually the goroutine that runs
// the filter's Process uses it.
type Input struct {
	stream *Stream
	from   []Instance   // the copies of the producer
	slots  []chan *link // deliver the connections
	links  []*link      // the connections
	acked  bool         // units are acknowledged
	err    error        // sticky

	number int       // of the current work
	open   int       // links on which the current work has not ended
	last   *link     // the link whose unit the filter holds
	first  time.Time // when the first frame arrived

	// With several links, each has a reader goroutine, which waits for its frames. A reader that has
	// delivered a frame pauses until the frame is released, and after the end of a work until all links have
	// reached the end.
	arrivals chan arrival
	resumes  map[*link]chan struct{} // wake the readers; capacity 1
}

type arrival struct {
	link  *link
	frame frame
	err   error
}

// Next returns the next unit of the work, from any copy of the producer, and io.EOF after the last one. The
// units of one copy arrive in order. The filter may read and change the unit until its next call of Next.
// Next does not allocate.
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

// Units returns an iterator that calls Next:
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

// nextFrame releases the last unit and returns a frame of any link.
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

// failStream records and returns the sticky error of the input.
func (in *Input) failStream(l *link, err error) error {
	in.err = &StreamError{Stream: in.stream.Name, Peer: l.peer, Err: err}
	return in.err
}

// startReaders starts the reader goroutines, which end with the run.
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

// readFrames is a reader goroutine: it delivers a frame of l to the input each time it is resumed, until a
// read fails or quit is closed.
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

// resumeReader lets the reader of l read the next frame.
func (in *Input) resumeReader(l *link) {
	if in.resumes != nil {
		in.resumes[l] <- struct{}{}
	}
}

func (in *Input) startWork(number int) {
	in.number, in.open = number, len(in.links)
	for _, l := range in.links {
		in.resumeReader(l)
	}
}

// skipRest reads the units of a work that the filter has not read.
func (in *Input) skipRest() error {
	for _, err := range in.Units() {
		if err != nil {
			return err
		}
	}
	return nil
}

// replyBye receives the producers' bye and replies to it. The reply means that everything downstream is
// finished.
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

// waitHangup waits for a bounded time until the producers have closed their connections. They have the
// replies then, and this host may exit.
func (in *Input) waitHangup() {
	for _, l := range in.links {
		_ = l.conn.SetReadDeadline(time.Now().Add(l.grace)) // if it fails, so does the read
		_, _ = l.frames.nextFrame()                         // no frame follows
	}
}
