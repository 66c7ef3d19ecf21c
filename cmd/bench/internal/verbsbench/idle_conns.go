package verbsbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/cmd/internal/closing"
	"github.com/softrnic/softrnic/verbs"
)

// idleConns is one side of idle connections.
type idleConns struct {
	cq        verbs.CQ
	qps       []verbs.QP
	ahs       []verbs.AH
	heapBytes int64 // heap growth in bytes
}

// idleQPCap are typical limits of queue pairs in a program that has many of them.
var idleQPCap = verbs.QPCap{MaxSendWR: 128, MaxRecvWR: 128, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInlineData: 64}

// openIdleConns creates the connections. Temporary objects are garbage before the heap is
// measured, so that only the connections contribute to its growth.
func openIdleConns(ctx context.Context, e *side, o IdleConnsOptions) (*idleConns, error) {
	c := &idleConns{}
	if o.Peers < 1 || o.Transport != verbs.RC && o.Transport != verbs.UD {
		return c, fmt.Errorf("verbsbench: idle connections: %d %v peers: want at least 1, RC or UD", o.Peers, o.Transport)
	}
	before := liveHeap()
	err := c.createConns(ctx, e, o)
	if err == nil {
		c.heapBytes = liveHeap() - before
		err = proc.Barrier(ctx, e.Worker) // neither side changes its heap while the other measures
	}
	if err != nil {
		err = errors.Join(err, c.close())
	}
	return c, err
}

// liveHeap returns the bytes in reachable heap objects.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // frees objects kept by finalizers and pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func (c *idleConns) createConns(ctx context.Context, e *side, o IdleConnsOptions) (err error) {
	if c.cq, err = e.dev.CreateCQ(4096); err != nil {
		return err
	}
	qps := o.Peers
	if o.Transport == verbs.UD {
		qps = 1
	}
	mine := make([]verbs.Endpoint, qps)
	c.qps = make([]verbs.QP, qps)
	for i := range c.qps {
		c.qps[i], mine[i], err = e.createQP(verbs.QPInitAttr{Type: o.Transport, SendCQ: c.cq, RecvCQ: c.cq, Cap: idleQPCap})
		if err != nil {
			return err
		}
	}
	ends, err := proc.Exchange(ctx, e.Worker, mine)
	if err != nil {
		return err
	}
	theirs := ends[e.peerRank()]
	if len(theirs) != len(mine) {
		return fmt.Errorf("verbsbench: peer has %d queue pairs, want %d", len(theirs), len(mine))
	}
	if o.Transport == verbs.UD {
		return c.createAddressHandles(e, theirs[0], o.Peers)
	}
	for i, qp := range c.qps {
		if err := verbs.Connect(qp, mine[i], theirs[i], verbs.ConnectOptions{MTU: e.path, AckTimeout: ackTimeout}); err != nil {
			return err
		}
	}
	return nil
}

// createAddressHandles creates the address handles by which one queue pair reaches n peers.
func (c *idleConns) createAddressHandles(e *side, to verbs.Endpoint, n int) (err error) {
	c.ahs = make([]verbs.AH, n)
	for i := range c.ahs {
		if c.ahs[i], err = e.pd.CreateAH(verbs.AHAttr{DGID: to.GID, UDPPort: to.UDPPort}); err != nil {
			return err
		}
	}
	return nil
}

func (c *idleConns) runRound(context.Context, request) (reply, error) {
	return reply{}, errors.New("verbsbench: idle connections have no rounds")
}

func (c *idleConns) close() error {
	return errors.Join(closing.All(c.qps...), closing.All(c.ahs...), closing.All[io.Closer](c.cq))
}
