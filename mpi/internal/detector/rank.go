package detector

import (
	"cmp"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// rank is the base of the parts of a detector: the engine, the times and the packets.
type rank struct {
	Times
	engine *engine.Engine
}

// Times are the times of a detector. The engine's lock guards them.
type Times struct {
	Interval         time.Duration // between two samples
	Alarm            time.Duration // time after which a wait raises the alarm; 0 is never
	ReplyTimeout     time.Duration // for the states of the other ranks
	MaxProbeInterval time.Duration // between two liveness probes of a rank
}

const (
	sampleInterval = 500 * time.Millisecond
	defaultAlarm   = time.Minute // if Config.Watchdog is 0
	stateTimeout   = 3 * time.Second
	probesPerLoss  = 5 // minimum number of liveness probes in the time of Config.GiveUp
)

// newTimes returns the times of a detector with the given values of Config.
func newTimes(watchdog, giveUp time.Duration) Times {
	t := Times{Interval: sampleInterval, Alarm: max(0, cmp.Or(watchdog, defaultAlarm)), ReplyTimeout: stateTimeout, MaxProbeInterval: max(giveUp/probesPerLoss, sampleInterval)}
	if t.Alarm > 0 {
		t.Interval = min(t.Interval, max(t.Alarm/4, time.Millisecond))
	}
	return t
}

// isDue reports whether this sample is the one nearest to the end of an interval. Tickers are
// not exact: a sample slightly too early would otherwise extend the interval by a whole period.
func (r *rank) isDue(passed, interval time.Duration) bool {
	return passed >= interval-r.Interval/2
}

// SendPacket sends a packet to another detector. It ignores the error of a lost rank, which
// HandleRankLost reports. The caller holds the engine's lock.
func (r *rank) SendPacket(core *protocol.Core, to int, h envelope.Header, payload []byte) {
	h.Context = deadlock.PacketContext
	_ = core.SendActive(to, h, payload)
}
