package udpraw

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/internal/sched"
)

// The two sides of a bandwidth session: rank 0 is the source, rank 1 the sink.
const (
	worker     = "udpraw"
	roleSource = "source"
	roleSink   = "sink"
)

// creditTimeout is the time without credits after which the source declares the packets in
// flight lost.
const creditTimeout = 20 * time.Millisecond

const markerLen = 8 // length of the datagram that ends a round, shorter than any packet

// bandwidthArgs are the arguments of both processes.
type bandwidthArgs struct {
	BandwidthOptions
	CreditFile string // file of the shared page; empty for credits by datagram
}

// A bandwidthRound requests one round.
type bandwidthRound struct {
	Round  uint64 // round number, from 1
	For    time.Duration
	Batch  int // packets in one send
	Window int // maximum packets in flight
}

// A side has the common state of source and sink.
type side struct {
	o       BandwidthOptions
	s       socket
	credits creditChannel
	mem     *workingMemory
	buf     []byte
}

type socketInfo struct {
	Addr       netip.AddrPort
	RecvBuffer int
}

func init() {
	proc.RegisterArgs(worker, roleSource, func(ctx context.Context, w *proc.Worker, a bandwidthArgs) error {
		e, _, err := openSide(ctx, w, a)
		if err != nil {
			return err
		}
		defer e.close()
		src := &source{side: e}
		return proc.Serve(ctx, w, src.runRound)
	})
	proc.RegisterArgs(worker, roleSink, func(ctx context.Context, w *proc.Worker, a bandwidthArgs) error {
		e, mine, err := openSide(ctx, w, a)
		if err != nil {
			return err
		}
		defer e.close()
		snk := &sink{side: e}
		return proc.Serve(ctx, w, func(ctx context.Context, r bandwidthRound) (Flow, error) {
			f, err := snk.runRound(ctx, r)
			f.RecvBuffer = mine.RecvBuffer
			return f, err
		})
	})
}

func openSide(ctx context.Context, w *proc.Worker, a bandwidthArgs) (*side, socketInfo, error) {
	s, err := openSocket(socketOptions{offload: a.Offload, buffer: a.RecvBuffer})
	if err != nil {
		return nil, socketInfo{}, err
	}
	e := &side{o: a.BandwidthOptions, s: s, credits: &datagramCredits{s: s}, mem: newWorkingMemory(), buf: make([]byte, 1<<16)}
	if a.CreditFile != "" {
		if e.credits, err = openSharedCredits(a.CreditFile); err != nil {
			s.close()
			return nil, socketInfo{}, err
		}
	}
	mine := socketInfo{s.localAddr(), s.recvBuffer()}
	ends, err := proc.Exchange(ctx, w, mine)
	if err != nil {
		e.close()
		return nil, socketInfo{}, err
	}
	s.setPeer(ends[1-w.Rank].Addr)
	return e, mine, nil
}

func (e *side) close() {
	e.credits.close()
	e.s.close()
}

// A source sends as fast as the window allows.
type source struct {
	*side
	sent     int64 // packets sent since the start of the session
	received int64 // packets received by the sink, from its credits
	lost     int64 // packets declared lost
	credit   credit
}

func (s *source) inFlight() int64 { return s.sent - s.received - s.lost }

func (s *source) refreshCredit() error {
	c, err := s.credits.readCredit()
	s.credit, s.received = c, int64(c.received)
	return err
}

func (s *source) runRound(ctx context.Context, r bandwidthRound) (Flow, error) {
	seg := s.o.Payload + overhead
	batch := s.buf[:r.Batch*seg]
	takenBefore, lostBefore := s.received, s.lost
	start := time.Now()
	for deadline := start.Add(r.For); time.Now().Before(deadline) && ctx.Err() == nil; {
		if err := s.waitWindow(int64(r.Window - r.Batch)); err != nil {
			return Flow{}, err
		}
		for i := range r.Batch {
			buildPacket(batch[i*seg:(i+1)*seg], s.mem.nextChunk(s.o.Payload), uint64(s.sent)+uint64(i))
		}
		if err := s.s.sendSegments(batch, seg); err != nil {
			return Flow{}, err
		}
		s.sent += int64(r.Batch)
	}
	if err := s.waitWindow(0); err != nil {
		return Flow{}, err
	}
	elapsed := time.Since(start)
	if err := s.endRound(ctx, r.Round); err != nil {
		return Flow{}, err
	}
	s.lost = s.sent - s.received // no packet arrives after the end marker
	f := Flow{Packets: s.received - takenBefore, Lost: s.lost - lostBefore, Elapsed: elapsed}
	f.Bytes = f.Packets * int64(s.o.Payload)
	return f, nil
}

// waitWindow waits until at most n packets are in flight, and declares packets lost if no
// credit arrives for creditTimeout.
func (s *source) waitWindow(n int64) error {
	if s.inFlight() <= n {
		return nil
	}
	last, since := s.received, time.Now()
	for spins := 0; ; spins++ {
		if err := s.refreshCredit(); err != nil {
			return err
		}
		if s.inFlight() <= n {
			return nil
		}
		if spins%1024 != 1023 {
			continue
		}
		sched.Yield()
		switch now := time.Now(); {
		case s.received != last:
			last, since = s.received, now
		case now.Sub(since) > creditTimeout:
			s.lost += s.inFlight()
		}
	}
}

// endRound sends the end marker of a round until the sink confirms it.
func (s *source) endRound(ctx context.Context, round uint64) error {
	var marker [markerLen]byte
	binary.LittleEndian.PutUint64(marker[:], round)
	for deadline := time.Now().Add(receiveTimeout); time.Now().Before(deadline) && ctx.Err() == nil; {
		if err := s.s.sendSegments(marker[:], markerLen); err != nil {
			return err
		}
		for resend := time.Now().Add(creditTimeout); time.Now().Before(resend); {
			if err := s.refreshCredit(); err != nil {
				return err
			}
			if s.credit.round == round {
				return nil
			}
		}
	}
	return fmt.Errorf("udpraw: end of round %d: not confirmed by the sink within %v", round, receiveTimeout)
}

// A sink reads packets from the socket, verifies and copies them, and returns credits.
type sink struct {
	*side
	received   uint64
	uncredited int // packets received since the last credit
}

func (s *sink) runRound(ctx context.Context, r bandwidthRound) (Flow, error) {
	seg := s.o.Payload + overhead
	coalesce := 1
	if s.o.Credits == CreditsByDatagram {
		coalesce = max(1, r.Window/4)
	}
	const idleReads = 64 // empty reads after which pending credits are sent and the processor is yielded
	lastPacket := time.Now()
	for idle := 0; ctx.Err() == nil; {
		n, err := s.s.tryReceive(s.buf)
		if err != nil {
			return Flow{}, err
		}
		switch {
		case n == 0:
			if idle++; idle%idleReads != 0 {
				continue
			}
			if s.uncredited > 0 {
				err = s.sendCredit(0)
			} else if idle%(idleReads*64) == 0 && time.Since(lastPacket) > receiveTimeout {
				err = errTimeout
			}
			sched.Yield()
		case n == markerLen:
			round := binary.LittleEndian.Uint64(s.buf)
			if err = s.sendCredit(round); err == nil && round == r.Round {
				return Flow{}, nil
			}
		default:
			if idle > 0 {
				idle, lastPacket = 0, time.Now()
			}
			if err = s.acceptPackets(s.buf[:n], seg); err == nil && s.uncredited >= coalesce {
				err = s.sendCredit(r.Round - 1)
			}
		}
		if err != nil {
			return Flow{}, err
		}
	}
	return Flow{}, context.Cause(ctx)
}

// acceptPackets verifies and copies the packets of one read.
func (s *sink) acceptPackets(b []byte, seg int) error {
	if len(b)%seg != 0 {
		return fmt.Errorf("udpraw: read of %d bytes: not a multiple of the packet length %d", len(b), seg)
	}
	for len(b) > 0 {
		if err := verifyPacket(b[:seg], s.mem.nextChunk(s.o.Payload)); err != nil {
			return err
		}
		b = b[seg:]
		s.received++
		s.uncredited++
	}
	return nil
}

func (s *sink) sendCredit(round uint64) error {
	s.uncredited = 0
	return s.credits.writeCredit(credit{s.received, round})
}
