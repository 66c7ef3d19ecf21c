package verbsbench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/rdm"
	"github.com/softrnic/softrnic/verbs"
)

// An RDMOp is an operation of package rdm: reliable datagrams, and remote memory access by
// them.
type RDMOp string

const (
	RDMRead  RDMOp = "read"  // rank 0 reads memory of rank 1
	RDMWrite RDMOp = "write" // ping-pong; a stream goes from rank 0 to rank 1
	RDMSend  RDMOp = "send"  // messages
)

// RDMOptions are the options of OpenRDM. Op and Size are required.
type RDMOptions struct {
	Op   RDMOp
	Size int // bytes

	// Service, Lazy and Native select how operations are served, as in rdm.Options: without
	// Native they are emulated. Poll makes the program at the target poll during a round.
	// rdm.ServePoll would also take a processor from the other targets.
	Service rdm.Service
	Lazy    bool
	Native  bool
	Poll    bool

	// Cold makes every operation access memory that is in no cache of the peer's processor, by
	// cycling through more memory than a cache holds.
	Cold bool
}

// RDM is a target of package rdm.
type RDM struct{ targetHandle }

// OpenRDM opens a target of package rdm on the pair.
func (p *Pair) OpenRDM(ctx context.Context, o RDMOptions) (*RDM, error) {
	s, _, err := p.openTarget(ctx, request{RDM: &o})
	if err != nil {
		return nil, err
	}
	return &RDM{s}, nil
}

// LatencyRounds returns rounds of iters operations, one at a time, for measure.Alternate. The
// figure is the median in microseconds of half a round trip, for reads of a whole one. All
// times are added to into, unless it is nil.
func (s *RDM) LatencyRounds(iters int, into *measure.Latency) measure.Round {
	return s.latencyRounds(iters, into)
}

// BandwidthRounds returns rounds of length d with many operations in flight. The figure is the
// bandwidth in MB/s.
func (s *RDM) BandwidthRounds(d time.Duration) measure.Round {
	return func(ctx context.Context) (float64, error) {
		first, err := s.callFirst(ctx, request{For: d})
		if err != nil {
			return 0, err
		}
		return first.Flow.MBps(), nil
	}
}

const (
	coldBytes = 96 << 20 // larger than a processor cache
	rdmWindow = 16       // operations in flight in a stream
)

// An rdmSide is one side of an RDM target.
type rdmSide struct {
	*side
	o      RDMOptions
	ep     *rdm.Endpoint
	peer   *rdm.Peer
	region *rdm.Region
	remote rdm.Remote
	stride int // distance of slots in bytes
	slots  int
	n      int // number of the current operation
	rounds int
	ops    [rdmWindow]rdm.Op
	buf    []byte // message to send
	in     []byte // received message

	received int // messages
}

// rdmConnInfo is the information that the sides exchange.
type rdmConnInfo struct {
	Addr   rdm.Addr
	Memory rdm.Remote
}

func openRDM(ctx context.Context, e *side, o RDMOptions) (_ *rdmSide, err error) {
	if o.Size < 8 || o.Op == RDMWrite && o.Size%8 != 0 {
		return nil, fmt.Errorf("verbsbench: rdm-%s of %d bytes: want at least 8, and for writes a multiple of 8", o.Op, o.Size)
	}
	r := &rdmSide{side: e, o: o, stride: (o.Size + 63) &^ 63, slots: 2}
	if o.Cold {
		r.stride = (o.Size + 4095) &^ 4095
		r.slots = max(2, coldBytes/r.stride)
	}
	defer func() {
		if err != nil && r.ep != nil {
			err = errors.Join(err, r.ep.Close())
		}
	}()
	if o.Poll {
		r.o.Service, o.Service = rdm.ServeCalls, rdm.ServeCalls
	}
	if r.ep, err = rdm.Open(e.dev, rdm.Options{Service: o.Service, Lazy: o.Lazy, Emulate: !o.Native}); err != nil {
		return nil, err
	}
	memory := make([]byte, r.slots*r.stride+8) // the last word is the end flag
	pattern := e.payloadPattern(o.Size)
	for i := range r.slots {
		copy(memory[i*r.stride:], pattern)
	}
	if r.region, err = r.ep.Register(memory, verbs.AccessLocalWrite|verbs.AccessRemote); err != nil {
		return nil, err
	}
	infos, err := proc.Exchange(ctx, e.Worker, rdmConnInfo{r.ep.Addr(), r.region.Remote(0)})
	if err != nil {
		return nil, err
	}
	r.remote = infos[e.peerRank()].Memory
	r.buf, r.in = make([]byte, o.Size), make([]byte, o.Size)
	copy(r.buf, pattern)
	if r.peer, err = r.ep.Dial(ctx, infos[e.peerRank()].Addr); err != nil {
		return nil, err
	}
	return r, proc.Barrier(ctx, e.Worker)
}

// slotOffset returns the memory offset of operation n.
func (r *rdmSide) slotOffset(n int) int { return n % r.slots * r.stride }

func (r *rdmSide) runRound(ctx context.Context, q request) (out reply, err error) {
	r.rounds++
	switch {
	case q.Overlap != nil:
		return r.runOverlap(ctx, *q.Overlap)
	case r.o.Poll && r.Rank == 1 && (r.o.Op == RDMRead || q.Iters == 0):
		err = r.spinUntil(func() bool { return r.region.LoadUint64(r.endFlagOffset()) == uint64(r.rounds) })
	case q.Iters > 0:
		out.Latency = measure.NewLatency()
		err = r.measureLatency(ctx, q.Iters, out.Latency)
	case r.Rank == 0:
		out.Flow = &Flow{}
		err = r.streamFor(ctx, q.For, out.Flow)
	case r.o.Op == RDMSend:
		err = r.receiveStream(ctx)
	}
	if err != nil {
		return reply{}, err
	}
	if r.o.Poll && r.Rank == 0 && (r.o.Op == RDMRead || q.Iters == 0) {
		if err := r.writeEndFlag(ctx); err != nil {
			return reply{}, err
		}
	}
	return out, proc.Barrier(ctx, r.Worker)
}

// endFlagOffset returns the offset of the word in which the other side signals the end of a
// round.
func (r *rdmSide) endFlagOffset() int { return r.slots * r.stride }

// writeEndFlag signals the end of the round to the other side.
func (r *rdmSide) writeEndFlag(ctx context.Context) error {
	binary.NativeEndian.PutUint64(r.region.Bytes()[r.sendOffset(0):], uint64(r.rounds))
	op := &r.ops[0]
	if err := r.peer.Write(op, r.region.At(r.sendOffset(0), 8), r.remote.Add(r.endFlagOffset())); err != nil {
		return err
	}
	return op.Wait(ctx)
}

// measureLatency runs iters operations, one at a time.
func (r *rdmSide) measureLatency(ctx context.Context, iters int, into *measure.Latency) error {
	ways := time.Duration(2)
	if r.o.Op == RDMRead {
		ways = 1
	}
	r.n = r.rounds << 20 // equal on both sides, which may differ after a stream
	last := time.Now()
	for i := range warmup + iters {
		r.n++
		if err := r.exchangeOne(ctx); err != nil {
			return err
		}
		now := time.Now()
		if i >= warmup {
			into.Record(now.Sub(last) / ways)
		}
		last = now
	}
	return nil
}

// exchangeOne runs this side's part of one round trip.
func (r *rdmSide) exchangeOne(ctx context.Context) error {
	switch {
	case r.o.Op == RDMRead && r.Rank == 1:
		return nil // the other side reads
	case r.o.Op == RDMRead:
		return r.readAndVerify()
	case r.Rank == 0:
		if err := r.sendMessage(ctx); err != nil {
			return err
		}
		return r.waitMessage(ctx)
	}
	if err := r.waitMessage(ctx); err != nil {
		return err
	}
	return r.sendMessage(ctx)
}

// readAndVerify reads the peer's memory and verifies every 64th result.
func (r *rdmSide) readAndVerify() error {
	op := &r.ops[0]
	if err := r.peer.Read(op, r.region.At(0, r.o.Size), r.remote.Add(r.slotOffset(r.n))); err != nil {
		return err
	}
	if err := r.spinUntil(func() bool { return op.Done() }); err != nil {
		return err
	}
	if err := op.Err(); err != nil {
		return err
	}
	if r.n%64 == 0 {
		return r.payloadPattern(r.o.Size).Check(r.region.Bytes()[:r.o.Size], false)
	}
	return nil
}

// sendMessage sends message n, or writes it to the memory that the peer polls. The last word of
// a message is n.
func (r *rdmSide) sendMessage(ctx context.Context) error {
	if r.o.Op == RDMSend {
		return r.peer.Send(ctx, r.buf)
	}
	op := &r.ops[r.n%rdmWindow]
	if err := r.spinUntil(op.Done); err != nil {
		return err
	}
	if err := op.Err(); err != nil {
		return err
	}
	op.DelayAck = true // like unsignaled RC writes; the reply confirms it
	binary.NativeEndian.PutUint64(r.buf[r.o.Size-8:], uint64(r.n))
	copy(r.sendSlot(r.n), r.buf)
	return r.peer.Write(op, r.region.At(r.sendOffset(r.n), r.o.Size), r.remote.Add(r.slotOffset(r.n)))
}

// sendSlot returns the memory from which message n is sent. It differs from the slot in which a
// message arrives.
func (r *rdmSide) sendSlot(n int) []byte { return r.region.Bytes()[r.sendOffset(n):][:r.o.Size] }

func (r *rdmSide) sendOffset(n int) int { return r.slotOffset(n + 1) }

// waitMessage waits for message n.
func (r *rdmSide) waitMessage(ctx context.Context) error {
	if r.o.Op == RDMSend {
		n, _, err := r.ep.Recv(ctx, r.in)
		if err != nil {
			return err
		}
		return r.verifyMessage(n)
	}
	last := r.slotOffset(r.n) + r.o.Size - 8
	return r.spinUntil(func() bool { return r.region.LoadUint64(last) == uint64(r.n) })
}

// spinUntil polls the network until done returns true.
func (r *rdmSide) spinUntil(done func() bool) error {
	var w pollDeadline
	for !done() {
		if !r.ep.Progress() && w.hasExpired() {
			return fmt.Errorf("verbsbench: operation %d of rdm-%s: not completed within %v", r.n, r.o.Op, pollTimeout)
		}
	}
	return nil
}

// streamFor posts operations for d and waits until all have arrived.
func (r *rdmSide) streamFor(ctx context.Context, d time.Duration, f *Flow) error {
	begin := time.Now()
	for time.Since(begin) < d {
		for range rdmWindow {
			r.n++
			if err := r.postStreamOp(ctx); err != nil {
				return err
			}
		}
		f.Messages += rdmWindow
	}
	if r.o.Op == RDMSend {
		if err := r.peer.Send(ctx, nil); err != nil {
			return err
		}
		if _, _, err := r.ep.Recv(ctx, r.in); err != nil {
			return err
		}
	}
	for i := range r.ops {
		if err := r.ops[i].Wait(ctx); err != nil {
			return err
		}
	}
	f.Elapsed = time.Since(begin)
	f.Sent, f.Bytes = f.Messages, f.Messages*int64(r.o.Size)
	return nil
}

func (r *rdmSide) postStreamOp(ctx context.Context) error {
	if r.o.Op == RDMSend {
		return r.peer.Send(ctx, r.buf)
	}
	op := &r.ops[r.n%rdmWindow]
	if err := op.Wait(ctx); err != nil {
		return err
	}
	if r.o.Op == RDMRead {
		return r.peer.Read(op, r.region.At(r.sendOffset(r.n%2), r.o.Size), r.remote.Add(r.slotOffset(r.n)))
	}
	return r.peer.Write(op, r.region.At(r.sendOffset(r.n), r.o.Size), r.remote.Add(r.slotOffset(r.n)))
}

// receiveStream receives messages up to an empty one, which it acknowledges.
func (r *rdmSide) receiveStream(ctx context.Context) error {
	for {
		n, _, err := r.ep.Recv(ctx, r.in)
		switch {
		case err != nil:
			return err
		case n == 0:
			return r.peer.Send(ctx, nil)
		}
		if err := r.verifyMessage(n); err != nil {
			return err
		}
	}
}

// verifyMessage checks the length of a received message of n bytes, and the data of every 64th.
func (r *rdmSide) verifyMessage(n int) error {
	if n != r.o.Size {
		return fmt.Errorf("wrong data: message of %d bytes, want %d", n, r.o.Size)
	}
	if r.received++; r.received%64 != 0 {
		return nil
	}
	defer clear(r.in)
	return r.payloadPattern(n).Check(r.in, false)
}

func (r *rdmSide) close() error { return r.ep.Close() }
