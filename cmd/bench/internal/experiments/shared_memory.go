package experiments

import (
	"context"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/peers"
	"github.com/softrnic/softrnic/cmd/bench/internal/sharedfile"
	"github.com/softrnic/softrnic/cmd/bench/internal/shmraw"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
)

func init() {
	bench.Register(&bench.Experiment{
		Name:   "shared-memory",
		Source: bench.Adapter,
		Layer:  bench.LayerVerbs,
		Claims: sharedMemoryClaims(),
		Axes:   []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
		Params: []bench.Param{
			{Name: "latency", Kind: bench.Ints, Default: "8,4KiB", Quick: "8", Max: maxPing, Doc: "message sizes for latency"},
			{Name: "bandwidth", Kind: bench.Ints, Default: "64KiB,1MiB", Quick: "64KiB", Max: 4 << 20, Doc: "message sizes for bandwidth"},
			{Name: "rate", Kind: bench.Ints, Default: "8", Max: maxPing, Doc: "message sizes for the message rate"},
			{Name: "beside", Kind: bench.Words, Default: "openmpi,ucx", Choices: []string{"openmpi", "ucx", "nothing"}, Doc: "other implementations to run, if installed"},
			{Name: "rounds", Kind: bench.Int, Default: "7", Quick: "2", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "5000", Quick: "300", Doc: "round trips in a round, or messages of another implementation"},
			{Name: "time", Kind: bench.Duration, Default: "100ms", Quick: "20ms", Doc: "length of a round of a stream"},
		},
		Run: runFunc(sharedMemory),
	})
}

// Series of the shared-memory link, of what bounds it, and of other implementations.
const (
	rawFlag     = "flag"
	rawRing     = "raw-ring"
	shmWrite    = "rc-write"
	shmRead     = "rc-read"
	socketWrite = "rc-write-socket"
	socketRead  = "rc-read-socket"
	ucxShared   = "ucx-posix-cma"
)

func sharedMemoryClaims() []bench.Statement {
	ratio := func(sentence, of, over, unit string, at bench.Points, l bench.Limit) bench.Statement {
		return bench.Statement{Sentence: sentence, Compare: bench.Ratio{Of: []string{of}, Over: []string{over}, Unit: unit, At: at, Limit: l}}
	}
	us, rate := measure.Microseconds, measure.MegabytesPerSec
	small, page, long := bench.At(8, measure.Bytes), bench.At(4096, measure.Bytes), bench.From(longMessage, measure.Bytes)
	return []bench.Statement{
		{
			Sentence: "An rc-write of 8 bytes takes at most 0.35 us longer than a message through a raw ring.",
			Compare:  bench.Value{Of: []string{shmWrite}, Minus: rawRing, Unit: us, At: small, Limit: bench.AtMost(0.35)},
		},
		ratio("An rc-write of 8 bytes takes at most 0.12 of the time through the socket.", shmWrite, socketWrite, us, small, bench.AtMost(0.12)),
		ratio("An rc-write of 8 bytes takes at most 2.5 times as long as a message of Open MPI in shared memory.",
			shmWrite, sharedOpenMPI, us, small, bench.AtMost(2.5)),
		ratio("An rc-write of 4 KiB takes at most 0.45 of the time of a message of Open MPI in shared memory.",
			shmWrite, sharedOpenMPI, us, page, bench.AtMost(0.45)),
		ratio("An rc-write of 4 KiB takes at most 1.4 times as long as a message of UCX in shared memory.",
			shmWrite, ucxShared, us, page, bench.AtMost(1.4)),
		ratio("An rc-write of 64 KiB and more has at least 4.5 times the bandwidth through the socket.", shmWrite, socketWrite, rate, long, bench.AtLeast(4.5)),
		ratio("An rc-write of 64 KiB and more has at least 0.6 of the bandwidth of a raw ring.", shmWrite, rawRing, rate, long, bench.AtLeast(0.6)),
		ratio("An rc-write of 64 KiB and more has at least 1.8 times the bandwidth of Open MPI in shared memory.",
			shmWrite, sharedOpenMPI, rate, long, bench.AtLeast(1.8)),
		ratio("An rc-write of 64 KiB and more has at least 1.5 times the bandwidth of UCX in shared memory.", shmWrite, ucxShared, rate, long, bench.AtLeast(1.5)),
		{
			Sentence: "An rc-read of 1 MiB moves at least 14 GB/s.",
			Compare:  bench.Value{Of: []string{shmRead}, Unit: rate, At: bench.At(1<<20, measure.Bytes), Limit: bench.AtLeast(14000)},
		},
		{
			Sentence: "At least 5 million rc-writes of 8 bytes pass in a second.",
			Compare:  bench.Value{Of: []string{shmWrite}, Unit: measure.MessagesPerSecond, At: small, Limit: bench.AtLeast(5e6)},
		},
	}
}

// A sharedRun is a running experiment.
type sharedRun struct {
	*run
	raw            *shmraw.Session
	shared, socket *verbsbench.Pair
	openMPI        *peers.OpenMPI // nil if it is not measured
	ucx            bool
}

func sharedMemory(ctx context.Context, r *run) error {
	s := &sharedRun{run: r}
	if !sharedfile.Supported {
		r.EmitAbsent(shmWrite, "shared memory is for Linux only")
		return nil
	}
	var err error
	if s.raw, err = shmraw.Open(ctx); err != nil {
		return err
	}
	defer s.raw.Close()
	if s.shared, err = verbsbench.OpenPair(ctx, verbsbench.Config{}); err != nil {
		return err
	}
	defer s.shared.Close()
	if s.socket, err = verbsbench.OpenPair(ctx, verbsbench.Config{NoSharedMemory: true}); err != nil {
		return err
	}
	defer s.socket.Close()
	if err := s.openPeers(ctx); err != nil {
		return err
	}
	if s.openMPI != nil {
		defer s.openMPI.Close() //nolint:errcheck // a temporary directory
	}
	sizes := []struct {
		name  string
		point func(context.Context, int) error
	}{{"latency", s.measureLatency}, {"bandwidth", s.measureBandwidth}, {"rate", s.measureRate}}
	steps := 0
	for _, c := range sizes {
		steps += len(r.Ints(c.name))
	}
	r.Plan(steps)
	for _, c := range sizes {
		for _, size := range r.Ints(c.name) {
			r.Step("%s of %d B", c.name, size)
			if err := c.point(ctx, size); err != nil {
				return err
			}
		}
	}
	return nil
}

// openPeers finds the other implementations, and emits the reason for those that are not measured.
func (s *sharedRun) openPeers(ctx context.Context) error {
	wants := func(name string) bool { return slices.Contains(s.Words("beside"), name) }
	if s.ucx = wants("ucx") && peers.HasUCX(); !s.ucx {
		s.EmitAbsent(ucxShared, "not selected, or not installed here (%s)", ucxPackage)
	}
	if !wants("openmpi") {
		s.EmitAbsent(sharedOpenMPI, "not selected (--set beside=openmpi)")
		return nil
	}
	program, err := peers.NewOpenMPI(ctx)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		s.EmitAbsent(sharedOpenMPI, "not installed here (%s): %v", openMPIPackages, err)
	default:
		s.openMPI = program
	}
	return nil
}

// addOpenMPI and addUCX add a test of another implementation, if it is measured.
func (s *sharedRun) addOpenMPI(set *seriesSet, test string, size, rounds int) {
	if s.openMPI != nil {
		set.addOpponent(sharedOpenMPI, openMPIPackages, func(ctx context.Context) (float64, error) {
			return s.openMPI.Measure(ctx, peers.OverShared, 2, test, size, rounds)
		})
	}
}

func (s *sharedRun) addUCX(set *seriesSet, round measure.Round) {
	if s.ucx {
		set.addOpponent(ucxShared, ucxPackage, round)
	}
}

// ucxTransports are the transports of UCX within a host.
const ucxTransports = "posix,cma,self"

// measureLatency measures half round trips of one size.
func (s *sharedRun) measureLatency(ctx context.Context, size int) error {
	iters := s.Int("iters")
	var set seriesSet
	set.addSeries(rawRing, s.raw.RingLatencyRounds(size, iters))
	set.addSeries(rawFlag, s.raw.FlagRounds(iters))
	for _, p := range []struct {
		series string
		pair   *verbsbench.Pair
	}{{shmWrite, s.shared}, {socketWrite, s.socket}} {
		ping, err := p.pair.OpenPingPong(ctx, verbsbench.PingOptions{Op: verbsbench.RCWrite, Size: size})
		if err != nil {
			return fmt.Errorf("%s: %w", p.series, err)
		}
		defer ping.Close(ctx) //nolint:errcheck // the pair is closed next
		set.addPing(p.series, ping, iters)
	}
	s.addOpenMPI(&set, "latency", size, iters)
	s.addUCX(&set, func(ctx context.Context) (float64, error) { return peers.UCXLatency(ctx, ucxTransports, size, iters) })
	_, err := s.measurePoint(ctx, &set, atSize(size, measure.Microseconds))
	return err
}

// measureBandwidth measures streams of one size.
func (s *sharedRun) measureBandwidth(ctx context.Context, size int) error {
	d := s.Duration("time")
	var set seriesSet
	set.addSeries(rawRing, s.raw.RingRounds(size, d))
	if err := s.addStreams(ctx, &set, size, verbsbench.Flow.MBps); err != nil {
		return err
	}
	s.addOpenMPI(&set, "bandwidth", size, max(2, s.Int("iters")/64))
	s.addUCX(&set, func(ctx context.Context) (float64, error) {
		return peers.UCXBandwidth(ctx, ucxTransports, size, s.Int("iters"))
	})
	_, err := s.measurePoint(ctx, &set, atSize(size, measure.MegabytesPerSec))
	return err
}

// measureRate measures the rate of messages of one size.
func (s *sharedRun) measureRate(ctx context.Context, size int) error {
	var set seriesSet
	if err := s.addStreams(ctx, &set, size, verbsbench.Flow.MessagesPerSecond); err != nil {
		return err
	}
	_, err := s.measurePoint(ctx, &set, atSize(size, measure.MessagesPerSecond))
	return err
}

// addStreams adds writes and reads on both links.
func (s *sharedRun) addStreams(ctx context.Context, set *seriesSet, size int, figure func(verbsbench.Flow) float64) error {
	for _, p := range []struct {
		series string
		pair   *verbsbench.Pair
		op     verbsbench.Op
	}{
		{shmWrite, s.shared, verbsbench.RCWrite}, {shmRead, s.shared, verbsbench.RCRead},
		{socketWrite, s.socket, verbsbench.RCWrite}, {socketRead, s.socket, verbsbench.RCRead},
	} {
		stream, err := p.pair.OpenStream(ctx, verbsbench.StreamOptions{Op: p.op, Size: size})
		if err != nil {
			return fmt.Errorf("%s: %w", p.series, err)
		}
		set.addSeries(p.series, stream.Rounds(s.Duration("time"), figure))
	}
	return nil
}
