// Package membership joins a rank to its job and takes it out again: it makes the engine on a
// fabric, the table of windows, the collective calls and the deadlock detector of the rank,
// connects them, and synchronizes the ranks at both ends.
//
//	m, err := membership.Join(ctx, membership.Config{Manager: manager, OpenFabric: open})
//	m.Detector.Start()              // once the predefined communicators are made
//	fenced, err := m.Synchronize(ctx, membership.LastCalls{Name: "world", Barrier: barrier, Fail: fail})
//	err = m.Close(ctx)
//
// Joining passes the first fence of the process manager, in which the ranks exchange where they
// run. Leaving takes three steps, so that no rank mistakes another's end for a failure: a flush
// makes all mismatches known to all ranks, a barrier detects lost ranks, which a fence does not,
// and the last fence completes after the last packets of the barrier have arrived.
package membership

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/collective"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/detector"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/onesided"
	"github.com/softrnic/softrnic/mpi/internal/partitioned"
	"github.com/softrnic/softrnic/mpi/internal/placement"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/pmi"
)

// StartTimeout is the time in which the ranks of a job must find one another.
const StartTimeout = 5 * time.Minute

// A Config configures the membership of a rank.
type Config struct {
	Manager pmi.Manager
	// OpenFabric returns the fabric of a job of several ranks and the adapter below it, nil if
	// there is none, which Close closes. The adapter is returned with an error, too.
	OpenFabric func(fabric.Host) (fabric.Fabric, io.Closer, error)
	Common     string // options that must be equal at all ranks of a node
	Direct     bool   // one-sided operations use RDMA where they can
	Calls      collective.Options
	Detector   detector.Config // without its Engine
}

// A Membership is the state of a rank in a job.
type Membership struct {
	Engine      *engine.Engine
	Manager     pmi.Manager
	Placement   *placement.Placement
	Calls       *collective.Job
	Windows     *onesided.Table
	Partitioned *partitioned.Table
	Detector    *detector.Detector
	Ended       atomic.Bool // the rank leaves the job, or has left it

	Adapter io.Closer // nil if there is none
	giveUp  time.Duration
}

// JoinAsFailed joins the first fence of the job, so that the other ranks learn that this one cannot
// start because of cause.
func JoinAsFailed(m pmi.Manager, cause error) { placement.New(m).JoinAsFailed(cause, StartTimeout) }

// Join makes the rank a member of the job of its process manager, and returns after all ranks have
// joined or failed.
func Join(ctx context.Context, c Config) (*Membership, error) {
	m := &Membership{Manager: c.Manager, Placement: placement.New(c.Manager), giveUp: c.Detector.GiveUp}
	size := c.Manager.Size()
	var err error
	m.Engine, err = engine.New(c.Manager.Rank(), size, func(h fabric.Host) (f fabric.Fabric, err error) {
		f, m.Adapter, err = c.OpenFabric(h)
		return f, err
	})
	if err != nil {
		m.Placement.JoinAsFailed(err, StartTimeout)
		_ = m.Close(ctx)
		return nil, err
	}
	c.Detector.Engine = m.Engine
	m.Windows = onesided.NewTable(onesided.Config{Engine: m.Engine, Direct: c.Direct})
	m.Partitioned = partitioned.NewTable(m.Engine)
	m.Detector = detector.New(c.Detector)
	m.Calls = collective.NewJob(m.Engine, m.Detector, c.Calls)
	m.Detector.AttachCalls(m.Calls)
	m.Engine.Do(func(core *protocol.Core) { // before the fence: packets of others may arrive right after it
		core.OnNotify, core.RankName = m.handleNotify, m.Placement.DescribeRank
		core.Handler, core.OnPeerFailed, core.OnSignature = m.handleActive, m.onRankLost, m.Calls.CompareMessage
	})
	if size > 1 {
		if err := m.Placement.Exchange(ctx, c.Common); err != nil {
			_ = m.Close(ctx)
			return nil, err
		}
	}
	return m, nil
}

// handleNotify implements protocol.Core.OnNotify: a partition, or an RDMA write of a collective call,
// has arrived.
func (m *Membership) handleNotify(from int, notice uint32) error {
	if notice&partitioned.NoticeFlag != 0 {
		return m.Partitioned.HandleNotify(from, notice)
	}
	return m.Calls.HandleNotify(from, notice)
}

// handleActive implements protocol.Core.Handler: it dispatches active messages to the deadlock
// detector, to the partitioned messages and to the windows.
func (m *Membership) handleActive(from int, h *envelope.Header, payload []byte) error {
	switch h.Context {
	case deadlock.PacketContext:
		return m.Detector.HandlePacket(from, h, payload)
	case partitioned.PacketContext:
		return m.Partitioned.HandlePacket(from, h, payload)
	}
	return m.Windows.HandlePacket(from, h, payload)
}

// onRankLost implements protocol.Core.OnPeerFailed.
func (m *Membership) onRankLost(rank int) {
	m.Detector.HandleRankLost(rank)
	m.Windows.OnRankLost(rank)
	m.Partitioned.OnRankLost(rank)
}

// Close stops the goroutines and closes the fabric and the adapter.
func (m *Membership) Close(ctx context.Context) (err error) {
	m.Ended.Store(true)
	if m.Engine != nil {
		if m.Detector != nil {
			m.Detector.Stop()
			m.Windows.Stop()
			m.Partitioned.Stop()
		}
		err = m.Engine.Close(ctx)
	}
	if m.Calls != nil {
		m.Calls.Close()
	}
	if m.Adapter != nil {
		err = errors.Join(err, m.Adapter.Close())
	}
	return err
}
