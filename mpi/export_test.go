package mpi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/collective"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/detector"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/shm"
)

// LimitContexts reduces the number of context ids.
func (w World) LimitContexts(n uint64) { w.world.Calls.Contexts = collective.NewContextIDs(n) }

// Algorithms returns the algorithms that were chosen.
func (w World) Algorithms() coll.Choices { return w.world.Calls.Choices }

// Options returns the options with those of the environment.
func (w World) Options() Options { return w.world.o }

// Choose sets the algorithms of communicators created from now on.
func (w World) Choose(ch coll.Choices) { w.world.Calls.Choices = ch }

// ProcessorsOf returns the number of processors of the ranks of a communicator.
func ProcessorsOf(c *Comm) int { return c.calls.Processors }

// Sleepers returns the number of ranks that sleep until another rank publishes data in the shared
// memory of a communicator.
func Sleepers(c *Comm) int { return c.calls.Shared.Board.Sleepers() }

// Shares reports whether the ranks of a communicator have shared memory.
func Shares(c *Comm) bool { return c.calls.Shared.Board != nil }

// BoardAfter is the number of calls after which shared memory is created, and BoardRoom its bytes
// per rank.
const BoardAfter = collective.BoardThreshold

var BoardRoom = collective.BoardSlotSize

// OpenSegments replaces the function by which this rank opens the shared memory of other ranks.
func (w World) OpenSegments(open func(string, int) (*shm.Segment, error)) {
	w.world.Calls.OpenSegment = open
}

// Vanish ends the rank's communication without a message to the others.
func (w World) Vanish() {
	w.world.Detector.Stop()
	w.world.Windows.Stop()
	if w.world.Adapter != nil {
		_ = w.world.Adapter.Close()
		return
	}
	_ = w.base.Engine.Close(context.Background())
}

// LostReason is the reason of a failure by Lose.
const LostReason = "the test is over"

// DepartEarly has the rank leave the job like a rank whose last barrier has failed.
func (w World) DepartEarly(why error) { w.world.Detector.AnnounceDeparture(why, w.world.o.GiveUp) }

// Unexpected polls the network once and returns the number of unexpected messages.
func (w World) Unexpected() (n int) {
	w.base.Engine.PollOnce()
	w.base.Engine.Do(func(core *protocol.Core) { _, n, _ = core.Pending() })
	return n
}

// Lose fails all other ranks at this rank, which ends its waits.
func (w World) Lose() {
	w.base.Engine.Do(func(*protocol.Core) {
		for rank := range w.base.Engine.Size() {
			if rank != w.base.Engine.Rank() {
				w.base.Engine.Fabric().Disconnect(rank, errors.New(LostReason))
			}
		}
	})
}

// SetAlarm sets the time after which a wait is reported without a request.
func (w World) SetAlarm(d time.Duration) {
	w.base.Engine.Do(func(*protocol.Core) { w.world.Detector.Alarm = d })
}

// DetectorTimes returns the sample interval, the alarm time and the reply timeout of a
// detector.
func DetectorTimes(o Options) (every, alarm, patience time.Duration) {
	t := detector.New(detector.Config{Watchdog: o.Watchdog}).Times
	return t.Interval, t.Alarm, t.ReplyTimeout
}

// SetPatience sets the timeout for the states of other ranks.
func (w World) SetPatience(d time.Duration) {
	w.base.Engine.Do(func(*protocol.Core) { w.world.Detector.ReplyTimeout = d })
}

// StopDetector stops the deadlock detector, so that this rank does not reply to queries.
func (w World) StopDetector() { w.world.Detector.Stop() }

// Raise raises the alarm of a wait at another rank than 0.
func (w World) Raise() {
	w.base.Engine.Do(func(core *protocol.Core) {
		w.world.Detector.SendPacket(core, 0, envelope.Header{Tag: deadlock.PacketAlarm}, nil)
	})
}

// Address returns the address at which a rank listens on a net.
func (w World) Address(net string, rank int) (string, error) {
	return w.world.Manager.Get(context.Background(), fmt.Sprintf("%s-%d", net, rank))
}

// Late returns the mismatch that was detected after its call had returned, and that the next call
// would return.
func Late(c *Comm) error {
	c.base.Engine.PollOnce()
	return c.calls.LateMismatch()
}

// GiveUps returns the times after which the fabrics report a silent rank as lost.
func GiveUps(o Options) (ud, tcp time.Duration, rdmaTimeout time.Duration, rdmaRetries int, pause time.Duration) {
	o.fillTimeouts()
	return o.UD.GiveUp, o.TCP.GiveUp, o.RDMA.Connect.AckTimeout, o.RDMA.Retries, detector.New(detector.Config{GiveUp: o.GiveUp}).MaxProbeInterval
}
