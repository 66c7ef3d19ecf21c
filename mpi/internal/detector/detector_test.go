package detector_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/detector"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/fabric/tcp"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/pmi"
)

// calls records the packets of collective calls. The engine's lock guards it.
type calls struct {
	packets []string
	last    []deadlock.Collective
}

func (c *calls) HandlePacket(from int, h *envelope.Header, payload []byte) error {
	c.packets = append(c.packets, fmt.Sprintf("%d from %d: %s", h.Tag, from, payload))
	return nil
}

func (c *calls) DescribeLastCall(send bool, peer int, _ match.Envelope) string {
	return fmt.Sprintf("call %t %d", send, peer)
}

func (c *calls) LastCalls(max int) []deadlock.Collective { return c.last }

func (c *calls) DescribeMessage(_ match.Envelope, from, to, bytes int) (deadlock.Message, bool) {
	return deadlock.Message{From: from, To: to, Bytes: int64(bytes)}, true
}

// testRank is a rank with a detector, without package mpi.
type testRank struct {
	*detector.Detector
	eng   *engine.Engine
	calls calls
}

const giveUp = 2 * time.Second

// startRanks returns the ranks of a job over TCP, whose reports go to report.
func startRanks(t *testing.T, n int, c detector.Config, report func(string)) (ranks []*testRank) {
	var all sync.WaitGroup
	for _, m := range pmi.NewLocal(n) {
		r := &testRank{}
		var err error
		r.eng, err = engine.New(m.Rank(), n, func(h fabric.Host) (fabric.Fabric, error) {
			return tcp.New(h, m, tcp.Options{GiveUp: giveUp * 3 / 4})
		})
		require.NoError(t, err)
		c.Engine, c.GiveUp, c.Report = r.eng, giveUp, report
		r.Detector = detector.New(c)
		r.AttachCalls(&r.calls)
		r.eng.Do(func(core *protocol.Core) { core.Handler, core.OnPeerFailed = r.HandlePacket, r.HandleRankLost })
		ranks = append(ranks, r)
		all.Go(func() { require.NoError(t, m.Fence(t.Context())) })
	}
	all.Wait()
	for _, r := range ranks {
		r.Start()
		t.Cleanup(func() {
			r.Stop()
			_ = r.eng.Close(context.Background())
		})
	}
	return ranks
}

// await waits until a rank meets a condition.
func (r *testRank) await(t *testing.T, name string, ready func(core *protocol.Core) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	require.NoError(t, r.eng.Wait(ctx, condition{r, ready}), name)
}

type condition struct {
	r     *testRank
	ready func(*protocol.Core) bool
}

func (c condition) Ready() bool { return c.ready(c.r.eng.Core()) }

// peerLost is the wait for a rank that ends when a rank is lost.
type peerLost struct {
	condition
	receive
}

func (w peerLost) Ready() bool { return w.condition.Ready() }

func (r *testRank) waitForLoss(ctx context.Context, lost, source int) error {
	return r.eng.Wait(ctx, peerLost{condition{r, func(core *protocol.Core) bool { return core.PeerError(lost) != nil }}, receive{source}})
}

// TestAlarm checks that ranks that wait for one another are reported once, by rank 0, and that
// the others are described.
func TestAlarm(t *testing.T) {
	reports := make(chan string, 4)
	ranks := startRanks(t, 4, detector.Config{Watchdog: time.Second}, func(text string) { reports <- text })
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i, source := range []int{1, 0, 0} {
		all.Go(func() { _ = ranks[i].eng.Wait(ctx, receive{source}) })
	}
	text := <-reports
	cancel()
	all.Wait()
	for _, want := range []string{
		"state of the 4 ranks of the job, queried by rank 0 at ",
		"Deadlock: ranks 0 and 1 wait for one another:",
		"rank 2 cannot continue without them.",
		"ranks 1 and 2: Recv(source 0, tag 5) at ",
		"rank 3: in no call of MPI, for ",
	} {
		require.Contains(t, text, want)
	}
	require.Empty(t, reports)
}

// TestAlarmWithoutRank0 checks that another rank queries if rank 0 is lost.
func TestAlarmWithoutRank0(t *testing.T) {
	reports := make(chan string, 4)
	ranks := startRanks(t, 3, detector.Config{Watchdog: time.Second}, func(text string) { reports <- text })
	for _, r := range ranks[1:] {
		r.eng.Do(func(*protocol.Core) { r.eng.Fabric().Disconnect(0, errors.New("test")) })
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = ranks[1].eng.Wait(ctx, receive{2}) }()
	text := <-reports
	require.Contains(t, text, "queried by rank 1 at ")
	require.Contains(t, text, "rank 0: no reply")
	require.Contains(t, text, "rank 1 has lost rank 0: test")
}

// TestLossSpreads checks that a rank that is waited for passes on the loss of another rank.
func TestLossSpreads(t *testing.T) {
	ranks := startRanks(t, 3, detector.Config{}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	errs := make(chan error)
	go func() { errs <- ranks[0].waitForLoss(ctx, 2, 1) }()
	ranks[1].eng.Do(func(*protocol.Core) { ranks[1].eng.Fabric().Disconnect(2, errors.New("cable cut")) })
	require.NoError(t, <-errs)
	ranks[0].eng.Do(func(core *protocol.Core) {
		require.ErrorIs(t, core.PeerError(2), protocol.ErrLost)
		require.ErrorContains(t, core.PeerError(2), "reported by rank 1: cable cut")
	})
}

// TestLostWhileWaiting checks that probes notice the end of a rank, of a wait and of a poll.
func TestLostWhileWaiting(t *testing.T) {
	for name, wait := range map[string]func(r *testRank, ctx context.Context) error{
		"wait": func(r *testRank, ctx context.Context) error { return r.waitForLoss(ctx, 1, 1) },
		"poll": func(r *testRank, ctx context.Context) error {
			p := &polled{peerLost: peerLost{condition{r, func(core *protocol.Core) bool { return core.PeerError(1) != nil }}, receive{1}}}
			for !r.eng.Test(p) {
				if ctx.Err() != nil {
					return ctx.Err()
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			ranks := startRanks(t, 2, detector.Config{}, nil)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			errs := make(chan error)
			go func() { errs <- wait(ranks[0], ctx) }()
			ranks[1].Stop()
			require.NoError(t, ranks[1].eng.Close(ctx))
			require.NoError(t, <-errs)
		})
	}
}

// polled is a condition that the program polls.
type polled struct {
	peerLost
	round uint64
}

func (w *polled) OnPoll(p *engine.PollStats) {
	if p.FirstInRound(&w.round) {
		p.Add(w, deadlock.NewPoll(w.DescribeWait(), w.Ready))
	}
}

// TestFlush checks that a flush returns only when the mismatches that the other rank has announced
// are confirmed.
func TestFlush(t *testing.T) {
	ranks := startRanks(t, 3, detector.Config{}, nil)
	ranks[2].eng.Do(func(core *protocol.Core) {
		ranks[2].SendPacket(core, 0, envelope.Header{Tag: deadlock.PacketProbe}, nil)
	})
	ranks[0].eng.Do(func(core *protocol.Core) { ranks[0].SendMismatch(core, 1, 8, []byte("bcast")) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, ranks[2].Flush(ctx, "world"))
	ranks[1].eng.Do(func(*protocol.Core) {
		require.Equal(t, []string{fmt.Sprintf("%d from 0: bcast", deadlock.PacketMismatch)}, ranks[1].calls.packets)
	})
	require.NoError(t, ranks[0].Flush(ctx, "world"))
}

// TestDeparture checks that the ranks learn the reason of a rank that leaves the job.
func TestDeparture(t *testing.T) {
	ranks := startRanks(t, 3, detector.Config{}, nil)
	var departed error // guarded by the lock of the engine of rank 1
	ranks[1].OnDeparture(func(err error) { departed = err })
	ranks[0].AnnounceDeparture(fmt.Errorf("%w: other root", deadlock.ErrMismatch), time.Minute)
	for _, r := range ranks[1:] {
		r.await(t, "rank 0 is lost", func(core *protocol.Core) bool { return core.PeerError(0) != nil })
	}
	ranks[1].eng.Do(func(*protocol.Core) {
		require.ErrorIs(t, departed, protocol.ErrLost)
		require.ErrorIs(t, departed, deadlock.ErrMismatch)
		require.ErrorContains(t, departed, "rank 0: left the job: ")
	})
	called := false
	ranks[1].OnDeparture(func(error) { called = true })
	require.True(t, called)
}

// TestInvalidPackets checks that packets that no detector sends are protocol violations.
func TestInvalidPackets(t *testing.T) {
	ranks := startRanks(t, 3, detector.Config{}, nil)
	r := ranks[0]
	for want, h := range map[string]envelope.Header{
		"unknown detector packet 99":                        {Tag: 99},
		"invalid report that rank 1 has lost rank 7":        {Tag: deadlock.PacketRankLost, ID: 7, Length: 1},
		"invalid report that rank 9 has lost rank 2":        {Tag: deadlock.PacketRankLost, ID: 2, Length: 9},
		"invalid report that rank 2 has lost rank 1":        {Tag: deadlock.PacketRankLost, ID: 1, Length: 2},
		"peer reports this rank as lost":                    {Tag: deadlock.PacketRankLost, ID: 0, Length: 2},
		"invalid report that rank 18446744073709551615 has": {Tag: deadlock.PacketRankLost, ID: 2, Length: 1<<64 - 1},
	} {
		r.eng.Do(func(*protocol.Core) { require.ErrorContains(t, r.HandlePacket(1, &h, nil), want) })
	}
	r.eng.Do(func(*protocol.Core) {
		require.NoError(t, r.HandlePacket(1, &envelope.Header{Tag: deadlock.PacketState, ID: 77}, []byte("{")), "no query is in progress")
		require.NoError(t, r.HandlePacket(1, &envelope.Header{Tag: deadlock.PacketConfirm}, nil), "no mismatch is unconfirmed")
	})
}
