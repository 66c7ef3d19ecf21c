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
	pumps    map[*link]chan struct{} // capacity 1
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
		l, f, err := in.next()
		if err != nil {
			return nil, in.fail(l, err)
		}
		switch f.kind {
		case kindUnit:
			l.work.add(f.payload)
			l.total.add(f.payload)
			in.last = l
			return f.payload, nil
		case kindEnd:
			if err := checkEnd(f.payload, in.number, l.work); err != nil {
				return nil, in.fail(l, err)
			}
			l.work = Counts{}
			in.open--
		default:
			return nil, in.fail(l, unexpected(f.kind, "units"))
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

// next gives back the last unit and takes a frame from any link.
func (in *Input) next() (*link, frame, error) {
	if l := in.last; l != nil {
		in.last = nil
		if in.acked {
			if err := l.write(ackFrame[:]); err != nil {
				return l, frame{}, l.why(err)
			}
		}
		in.resume(l)
	}
	var a arrival
	if in.arrivals == nil {
		a.link = in.links[0]
		a.frame, a.err = a.link.next()
	} else {
		a = <-in.arrivals
	}
	if in.first.IsZero() {
		in.first = time.Now()
	}
	return a.link, a.frame, a.err
}

var ackFrame = [frameHeader]byte(appendFrame(nil, kindAck, nil))

func (in *Input) fail(l *link, err error) error {
	in.err = &StreamError{Stream: in.stream.Name, Peer: l.peer, Err: err}
	return in.err
}

// start makes the pumps, which end with the run.
func (in *Input) start(r *run) {
	if len(in.links) < 2 {
		return
	}
	in.arrivals = make(chan arrival)
	in.pumps = make(map[*link]chan struct{}, len(in.links))
	for _, l := range in.links {
		on := make(chan struct{}, 1)
		in.pumps[l] = on
		r.pumps.Go(func() { pump(l, on, in.arrivals, r.quit) })
	}
}

func pump(l *link, on <-chan struct{}, to chan<- arrival, quit <-chan struct{}) {
	for {
		select {
		case <-on:
		case <-quit:
			return
		}
		f, err := l.next()
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

func (in *Input) resume(l *link) {
	if in.pumps != nil {
		in.pumps[l] <- struct{}{}
	}
}

// begin begins a work.
func (in *Input) begin(number int) {
	in.number, in.open = number, len(in.links)
	for _, l := range in.links {
		in.resume(l)
	}
}

// skip takes what the filter left of a work.
func (in *Input) skip() error {
	for _, err := range in.Units() {
		if err != nil {
			return err
		}
	}
	return nil
}

// bye takes the producer's bye and answers it, by which the producer knows that
// everything behind this end is done.
func (in *Input) bye() error {
	for _, l := range in.links {
		in.resume(l)
	}
	for range in.links {
		l, f, err := in.next()
		if err == nil && f.kind != kindBye {
			err = unexpected(f.kind, "bye")
		}
		if err == nil {
			err = l.write(appendFrame(nil, kindBye, nil))
		}
		if err != nil {
			return in.fail(l, err)
		}
		in.last = nil
	}
	return nil
}

// end waits, not for ever, until the producers have hung up: then they have the
// answers, and this host may be gone.
func (in *Input) end() {
	for _, l := range in.links {
		_ = l.conn.SetReadDeadline(time.Now().Add(l.grace)) // where that fails, so does the read
		_, _ = l.frames.next()                              // nothing can come
	}
}
