package udpraw

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/internal/thread"
)

// The two ends of a bandwidth session: rank 0 is the source, rank 1 the sink.
const (
	worker     = "udpraw"
	roleSource = "source"
	roleSink   = "sink"
)

// stall is how long the source waits for credits before it counts what is in
// flight as lost.
const stall = 20 * time.Millisecond

const markerLen = 8 // the datagram that ends a round; shorter than any packet

// bandwidthArgs is what both ends are told when they start.
type bandwidthArgs struct {
	BandwidthOptions
	WindowFile string // of the shared window; empty for credits by datagram
}

// bandwidthRound asks for one round.
type bandwidthRound struct {
	Round  uint64 // from 1, going up
	For    time.Duration
	Batch  int // packets in one send
	Window int // packets that may be in flight
}

// end is what source and sink have in common.
type end struct {
	o       BandwidthOptions
	s       socket
	credits window
	mem     *memory
	buf     []byte
}

type hello struct {
	Addr       netip.AddrPort
	RecvBuffer int
}

func init() {
	proc.Register(worker, roleSource, func(ctx context.Context, w *proc.Worker) error {
		e, _, err := openEnd(ctx, w)
		if err != nil {
			return err
		}
		defer e.close()
		src := &source{end: e}
		return proc.Serve(ctx, w, src.run)
	})
	proc.Register(worker, roleSink, func(ctx context.Context, w *proc.Worker) error {
		e, mine, err := openEnd(ctx, w)
		if err != nil {
			return err
		}
		defer e.close()
		snk := &sink{end: e}
		return proc.Serve(ctx, w, func(ctx context.Context, r bandwidthRound) (Flow, error) {
			f, err := snk.run(ctx, r)
			f.RecvBuffer = mine.RecvBuffer
			return f, err
		})
	})
}

func openEnd(ctx context.Context, w *proc.Worker) (*end, hello, error) {
	a, err := proc.Args[bandwidthArgs](w)
	if err != nil {
		return nil, hello{}, err
	}
	s, err := openSocket(socketOptions{offload: a.Offload, buffer: a.RecvBuffer})
	if err != nil {
		return nil, hello{}, err
	}
	e := &end{o: a.BandwidthOptions, s: s, credits: &datagramWindow{s: s}, mem: newMemory(), buf: make([]byte, 1<<16)}
	if a.WindowFile != "" {
		if e.credits, err = openSharedWindow(a.WindowFile); err != nil {
			s.close()
			return nil, hello{}, err
		}
	}
	mine := hello{s.addr(), s.recvBuffer()}
	ends, err := proc.Exchange(ctx, w, mine)
	if err != nil {
		e.close()
		return nil, hello{}, err
	}
	s.aim(ends[1-w.Rank].Addr)
	return e, mine, nil
}

func (e *end) close() {
	e.credits.close()
	e.s.close()
}

// source sends as fast as the window allows.
type source struct {
	*end
	sent   int64 // packets since the session began
	taken  int64 // of them, as the sink says
	lost   int64 // of them, as it turned out
	credit credit
}

func (s *source) inFlight() int64 { return s.sent - s.taken - s.lost }

func (s *source) refresh() error {
	c, err := s.credits.read()
	s.credit, s.taken = c, int64(c.taken)
	return err
}

func (s *source) run(ctx context.Context, r bandwidthRound) (Flow, error) {
	seg := s.o.Payload + overhead
	batch := s.buf[:r.Batch*seg]
	takenBefore, lostBefore := s.taken, s.lost
	start := time.Now()
	for deadline := start.Add(r.For); time.Now().Before(deadline) && ctx.Err() == nil; {
		if err := s.awaitWindow(int64(r.Window - r.Batch)); err != nil {
			return Flow{}, err
		}
		for i := range r.Batch {
			build(batch[i*seg:(i+1)*seg], s.mem.next(s.o.Payload), uint64(s.sent)+uint64(i))
		}
		if err := s.s.send(batch, seg); err != nil {
			return Flow{}, err
		}
		s.sent += int64(r.Batch)
	}
	if err := s.awaitWindow(0); err != nil {
		return Flow{}, err
	}
	elapsed := time.Since(start)
	if err := s.endRound(ctx, r.Round); err != nil {
		return Flow{}, err
	}
	s.lost = s.sent - s.taken // the marker came behind all that will ever come
	f := Flow{Packets: s.taken - takenBefore, Lost: s.lost - lostBefore, Elapsed: elapsed}
	f.Bytes = f.Packets * int64(s.o.Payload)
	return f, nil
}

// awaitWindow waits until at most n packets are in flight, and gives up those
// that do not arrive.
func (s *source) awaitWindow(n int64) error {
	if s.inFlight() <= n {
		return nil
	}
	last, since := s.taken, time.Now()
	for spins := 0; ; spins++ {
		if err := s.refresh(); err != nil {
			return err
		}
		if s.inFlight() <= n {
			return nil
		}
		if spins%1024 != 1023 {
			continue
		}
		thread.Yield()
		switch now := time.Now(); {
		case s.taken != last:
			last, since = s.taken, now
		case now.Sub(since) > stall:
			s.lost += s.inFlight()
		}
	}
}

// endRound tells the sink that the round is over until it says that it knows.
func (s *source) endRound(ctx context.Context, round uint64) error {
	var marker [markerLen]byte
	binary.LittleEndian.PutUint64(marker[:], round)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline) && ctx.Err() == nil; {
		if err := s.s.send(marker[:], markerLen); err != nil {
			return err
		}
		for again := time.Now().Add(stall); time.Now().Before(again); {
			if err := s.refresh(); err != nil {
				return err
			}
			if s.credit.round == round {
				return nil
			}
		}
	}
	return fmt.Errorf("udpraw: the sink did not confirm the end of round %d within %v", round, patience)
}

// sink takes packets out of the socket, checks and copies them, and gives
// credits.
type sink struct {
	*end
	taken uint64
	owed  int // packets taken since the last credit
}

func (s *sink) run(ctx context.Context, r bandwidthRound) (Flow, error) {
	seg := s.o.Payload + overhead
	coalesce := 1
	if s.o.Credits == CreditsByDatagram {
		coalesce = max(1, r.Window/4)
	}
	const restless = 64 // empty reads after which what is owed leaves, and others may have the core
	heard := time.Now()
	for idle := 0; ctx.Err() == nil; {
		n, err := s.s.tryReceive(s.buf)
		if err != nil {
			return Flow{}, err
		}
		switch {
		case n == 0:
			if idle++; idle%restless != 0 {
				continue
			}
			if s.owed > 0 {
				err = s.publish(0)
			} else if idle%(restless*64) == 0 && time.Since(heard) > patience {
				err = errSilence
			}
			thread.Yield()
		case n == markerLen:
			round := binary.LittleEndian.Uint64(s.buf)
			if err = s.publish(round); err == nil && round == r.Round {
				return Flow{}, nil
			}
		default:
			if idle > 0 {
				idle, heard = 0, time.Now()
			}
			if err = s.take(s.buf[:n], seg); err == nil && s.owed >= coalesce {
				err = s.publish(r.Round - 1)
			}
		}
		if err != nil {
			return Flow{}, err
		}
	}
	return Flow{}, context.Cause(ctx)
}

// take checks and copies the packets of one read.
func (s *sink) take(b []byte, seg int) error {
	if len(b)%seg != 0 {
		return fmt.Errorf("udpraw: a read of %d bytes does not hold whole packets of %d", len(b), seg)
	}
	for len(b) > 0 {
		if err := check(b[:seg], s.mem.next(s.o.Payload)); err != nil {
			return err
		}
		b = b[seg:]
		s.taken++
		s.owed++
	}
	return nil
}

func (s *sink) publish(round uint64) error {
	s.owed = 0
	return s.credits.publish(credit{s.taken, round})
}
