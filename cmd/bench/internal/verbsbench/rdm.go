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

// RDMOp is what a subject of package rdm does: reliable datagrams, and memory
// accessed by them.
type RDMOp string

const (
	RDMRead  RDMOp = "read"  // rank 0 reads of rank 1
	RDMWrite RDMOp = "write" // to and fro; a stream flows from rank 0 to rank 1
	RDMSend  RDMOp = "send"  // messages
)

// RDMOptions say what goes to and fro, or flows. Op and Size are required.
type RDMOptions struct {
	Op   RDMOp
	Size int // bytes

	// Service, Lazy and Native say who carries out operations, as rdm.Options has
	// it: without Native they are emulated. Poll has the program at the target do
	// nothing else while a round lasts; rdm.ServePoll would take a processor from
	// the other subjects, too.
	Service rdm.Service
	Lazy    bool
	Native  bool
	Poll    bool

	// Cold has every operation go to memory of the peer that is in no cache of
	// its processor: they walk through more than fits there.
	Cold bool
}

// RDM is what package rdm does between the two processes.
type RDM struct{ targetHandle }

// OpenRDM opens a subject of package rdm on the pair.
func (p *Pair) OpenRDM(ctx context.Context, o RDMOptions) (*RDM, error) {
	s, _, err := p.openTarget(ctx, request{RDM: &o})
	if err != nil {
		return nil, err
	}
	return &RDM{s}, nil
}

// LatencyRounds is rounds of iters operations one at a time, as measure.Alternate takes them;
// the figure is the median in microseconds: of half a round trip, and for reads of the
// whole. All that is measured is added to into, unless that is nil.
func (s *RDM) LatencyRounds(iters int, into *measure.Latency) measure.Round {
	return medianRound(func(ctx context.Context, iters int) (*measure.Latency, error) {
		ends, err := proc.Call[request, reply](ctx, s.pair.g, request{Target: s.id, Iters: iters})
		if err != nil {
			return nil, err
		}
		return ends[0].Latency, nil
	}, iters, into)
}

// BandwidthRounds is rounds of as many operations as go within d, many at a time; the figure
// is the rate in MB/s.
func (s *RDM) BandwidthRounds(d time.Duration) measure.Round {
	return func(ctx context.Context) (float64, error) {
		ends, err := proc.Call[request, reply](ctx, s.pair.g, request{Target: s.id, For: d})
		if err != nil {
			return 0, err
		}
		return ends[0].Flow.MBps(), nil
	}
}

const (
	coldBytes = 96 << 20 // more than a cache holds
	rdmWindow = 16       // operations of a stream under way
)

// rdmSide is one end.
type rdmSide struct {
	*side
	o      RDMOptions
	ep     *rdm.Endpoint
	peer   *rdm.Peer
	region *rdm.Region
	remote rdm.Remote
	stride int // from one place to the next
	slots  int
	n      int // operations so far
	rounds int
	ops    [rdmWindow]rdm.Op
	buf    []byte
}

// rdmConnInfo is what the ends tell each other.
type rdmConnInfo struct {
	Addr   rdm.Addr
	Memory rdm.Remote
}

func openRDM(ctx context.Context, e *side, o RDMOptions) (_ *rdmSide, err error) {
	if o.Size < 8 || o.Op == RDMWrite && o.Size%8 != 0 {
		return nil, fmt.Errorf("verbsbench: rdm cannot move %d bytes here; 8 at least, and multiples of 8 to write", o.Size)
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
	memory := make([]byte, r.slots*r.stride+8) // and a mark: this round is over
	pattern := e.payloadPattern(o.Size)
	for i := range r.slots {
		copy(memory[i*r.stride:], pattern)
	}
	if r.region, err = r.ep.Register(memory, verbs.AccessLocalWrite|verbs.AccessRemote); err != nil {
		return nil, err
	}
	sheets, err := proc.Exchange(ctx, e.Worker, rdmConnInfo{r.ep.Addr(), r.region.Remote(0)})
	if err != nil {
		return nil, err
	}
	r.remote = sheets[e.peerRank()].Memory
	r.buf = make([]byte, max(o.Size, 64))
	if r.peer, err = r.ep.Dial(ctx, sheets[e.peerRank()].Addr); err != nil {
		return nil, err
	}
	return r, proc.Barrier(ctx, e.Worker)
}

// slotOffset is where operation n goes.
func (r *rdmSide) slotOffset(n int) int { return n % r.slots * r.stride }

func (r *rdmSide) runRound(ctx context.Context, q request) (out reply, err error) {
	r.rounds++
	switch {
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

// endFlagOffset is where the other end says that a round is over.
func (r *rdmSide) endFlagOffset() int { return r.slots * r.stride }

// writeEndFlag says so there.
func (r *rdmSide) writeEndFlag(ctx context.Context) error {
	binary.NativeEndian.PutUint64(r.region.Bytes()[r.sendOffset(0):], uint64(r.rounds))
	op := &r.ops[0]
	if err := r.peer.Write(op, r.region.At(r.sendOffset(0), 8), r.remote.Add(r.endFlagOffset())); err != nil {
		return err
	}
	return op.Wait(ctx)
}

// measureLatency does iters operations one at a time.
func (r *rdmSide) measureLatency(ctx context.Context, iters int, into *measure.Latency) error {
	ways := time.Duration(2)
	if r.o.Op == RDMRead {
		ways = 1
	}
	r.n = r.rounds << 20 // the same at both ends, which a stream has counted differently
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

// exchangeOne is this end's part of one operation to and fro.
func (r *rdmSide) exchangeOne(ctx context.Context) error {
	switch {
	case r.o.Op == RDMRead && r.Rank == 1:
		return nil // the other end does it all
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

// readAndVerify reads what the peer has, and looks at it.
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

// sendMessage sends message n, or writes it where the peer looks for it: its last word is n.
func (r *rdmSide) sendMessage(ctx context.Context) error {
	if r.o.Op == RDMSend {
		return r.peer.Send(ctx, r.buf[:r.o.Size])
	}
	op := &r.ops[r.n%rdmWindow]
	if err := r.spinUntil(op.Done); err != nil {
		return err
	}
	if err := op.Err(); err != nil {
		return err
	}
	op.Unhurried = true // as unsignaled writes of RC: the next is an answer
	binary.NativeEndian.PutUint64(r.buf[r.o.Size-8:], uint64(r.n))
	copy(r.sendSlot(r.n), r.buf[:r.o.Size])
	return r.peer.Write(op, r.region.At(r.sendOffset(r.n), r.o.Size), r.remote.Add(r.slotOffset(r.n)))
}

// sendSlot is where message n leaves from, which is not where one comes to.
func (r *rdmSide) sendSlot(n int) []byte { return r.region.Bytes()[r.sendOffset(n):][:r.o.Size] }

func (r *rdmSide) sendOffset(n int) int { return r.slotOffset(n + 1) }

// waitMessage waits for message n.
func (r *rdmSide) waitMessage(ctx context.Context) error {
	if r.o.Op == RDMSend {
		_, _, err := r.ep.Recv(ctx, r.buf)
		return err
	}
	last := r.slotOffset(r.n) + r.o.Size - 8
	return r.spinUntil(func() bool { return r.region.LoadUint64(last) == uint64(r.n) })
}

// spinUntil serves the network until done.
func (r *rdmSide) spinUntil(done func() bool) error {
	var w pollDeadline
	for !done() {
		if !r.ep.Progress() && w.hasExpired() {
			return fmt.Errorf("verbsbench: operation %d of rdm-%s did not complete within %v", r.n, r.o.Op, pollTimeout)
		}
	}
	return nil
}

// streamFor does as much as goes within d, and waits until all of it has arrived.
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
		if _, _, err := r.ep.Recv(ctx, r.buf); err != nil {
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
		return r.peer.Send(ctx, r.buf[:r.o.Size])
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

// receiveStream takes messages up to an empty one, and answers that.
func (r *rdmSide) receiveStream(ctx context.Context) error {
	for {
		switch n, _, err := r.ep.Recv(ctx, r.buf); {
		case err != nil:
			return err
		case n == 0:
			return r.peer.Send(ctx, nil)
		case n != r.o.Size:
			return fmt.Errorf("wrong data: a message of %d bytes, not %d", n, r.o.Size)
		}
	}
}

func (r *rdmSide) close() error { return r.ep.Close() }
