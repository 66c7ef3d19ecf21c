package mpi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/shm"
)

// LimitContexts makes room for few communicators.
func (w World) LimitContexts(n uint64) { w.world.contexts = newContextIDs(n) }

// Algorithms are those that were chosen.
func (w World) Algorithms() coll.Choices { return w.world.o.choices }

// Choose has communicators that are made from now on use other algorithms.
func (w World) Choose(ch coll.Choices) { w.world.o.choices = ch }

// CountList counts the numbers of a list of processors.
var CountList = countList

// CountQuota is how many processors a limit on their time allows.
var CountQuota = countQuota

// MachineProcessors is how many processors this machine has.
var MachineProcessors = machineProcessors

// ProcessorsOf is how many processors the ranks of a communicator have.
func ProcessorsOf(c *Comm) int { return c.cpus }

// Sleepers is how many ranks sleep until another shows something in the memory that
// those of a communicator have in common.
func Sleepers(c *Comm) int { return c.sharedMemory.board.Sleepers() }

// Shares reports whether the ranks of a communicator have such memory by now.
func Shares(c *Comm) bool { return c.sharedMemory.board != nil }

// BoardAfter is at which call it is made, and BoardRoom how many bytes a rank can show there.
const BoardAfter = boardThreshold

var BoardRoom = boardSlotSize

// OpenSegments has ranks open memory that others have made by another function.
func OpenSegments(open func(string, int) (*shm.Segment, error)) (restore func()) {
	before := openSegment
	openSegment = open
	return func() { openSegment = before }
}

// Vanish ends the rank's communication without a word to the others.
func (w World) Vanish() {
	w.world.detector.stop()
	w.world.windows.stop(w.world)
	if w.world.dev != nil {
		_ = w.world.dev.Close()
		return
	}
	_ = w.eng.Close(context.Background())
}

// LostReason is why ranks are lost by Lose.
const LostReason = "the test is over"

// DepartEarly has the rank leave the job as one does whose last barrier has failed.
func (w World) DepartEarly(why error) { w.world.departEarly(why, w.world.o.GiveUp) }

// Unexpected polls the network once and returns the number of unexpected messages.
func (w World) Unexpected() (n int) {
	w.eng.PollOnce()
	w.eng.Do(func(core *protocol.Core) { _, n, _ = core.Pending() })
	return n
}

// Lose fails all other ranks at this rank, which ends its waits.
func (w World) Lose() {
	w.eng.Do(func(*protocol.Core) {
		for rank := range w.eng.Size() {
			if rank != w.eng.Rank() {
				w.eng.Fabric().Disconnect(rank, errors.New(LostReason))
			}
		}
	})
}

// SetAlarm sets when a rank has waited for too long, without a wish for a report.
func (w World) SetAlarm(d time.Duration) {
	w.eng.Do(func(*protocol.Core) { w.world.detector.alarm = d })
}

// DetectorTimes returns the sample interval, the alarm time and the reply timeout of a
// detector.
func DetectorTimes(o Options) (every, alarm, patience time.Duration) {
	l := newDeadlockDetector(&job{o: o})
	return l.interval, l.alarm, l.replyTimeout
}

// SetPatience sets the timeout for the states of other ranks.
func (w World) SetPatience(d time.Duration) {
	w.eng.Do(func(*protocol.Core) { w.world.detector.replyTimeout = d })
}

// StopDetector stops the deadlock detector, so that this rank does not reply to queries.
func (w World) StopDetector() { w.world.detector.stop() }

// Raise raises the alarm of a wait.
func (w World) Raise() {
	w.eng.Do(func(core *protocol.Core) { w.world.detector.raiseAlarm(core, reasonDeadlock) })
}

// Address is where a rank takes connections of a net.
func (w World) Address(net string, rank int) (string, error) {
	return w.world.manager.Get(context.Background(), fmt.Sprintf("%s-%d", net, rank))
}

// What a rank may ask for, and how.
const (
	MaxReplies     = maxReplies
	PacketPut      = int32(packetPut)
	PacketSend     = int32(packetSend)
	PacketFind     = int32(packetFind)
	PacketFound    = int32(packetFound)
	PacketMissing  = int32(packetMissing)
	PacketRecall   = int32(packetRecall)
	PacketReturned = int32(packetReturned)
)

// WinPacket hands a window a packet as if a rank had sent it.
func (w *Win) WinPacket(from int, h envelope.Header, payload []byte) (err error) {
	h.Context = w.comm.contextID
	w.eng.Do(func(*protocol.Core) { err = w.comm.world.windows.handlePacket(w.comm.worldRank(from), &h, payload) })
	return err
}

// Late is the error of a call of the communicator that was over when it was found to be
// wrong, which the next call would return.
func Late(c *Comm) error {
	c.eng.PollOnce()
	return c.lateDisagreement()
}

// GiveUps are the times after which each fabric gives up a rank that is silent.
func GiveUps(o Options) (ud, tcp time.Duration, rdmaTimeout time.Duration, rdmaRetries int, pause time.Duration) {
	o.fillTimeouts()
	return o.UD.GiveUp, o.TCP.GiveUp, o.RDMA.Connect.AckTimeout, o.RDMA.Retries, o.maxProbeInterval()
}
