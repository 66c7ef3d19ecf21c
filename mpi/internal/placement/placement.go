// Package placement holds where the ranks of a job run: the number of processors of each node, on
// which the choice of collective algorithms depends, and the host and the process of each rank,
// for error texts. Ranks publish both by the process manager before the first fence.
//
//	p := placement.New(manager)
//	err := p.Exchange(ctx, "Check false")        // publishes, passes the first fence, reads
//	n := p.CountProcessors(2, comm.WorldRank)    // of the ranks of a communicator together
//	p.DescribeRank(3)                            // "node7, pid 23625"
//
// A rank that cannot start calls JoinAsFailed instead of Exchange, so that the others learn the
// reason and do not wait for it.
package placement

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/mpi/pmi"
)

// Placement is the placement of the ranks of a job. Its methods are safe for concurrent use, except
// Exchange.
type Placement struct {
	manager    pmi.Manager
	processors map[int]int // by node, of nodes with more than one rank
	described  sync.Map    // results of DescribeRank by rank
}

// New returns a placement of which only the nodes of the ranks are known.
func New(m pmi.Manager) *Placement { return &Placement{manager: m} }

// Exchange publishes the processors of this node and the location of this rank, passes the first
// fence and reads the processors of all nodes. options are the options that must be equal at all
// ranks of a node; it fails if those of the first rank of the node differ.
//
// The number of processors must be the same at all ranks, so the first rank of each node publishes
// it.
func (p *Placement) Exchange(ctx context.Context, options string) error {
	m := p.manager
	node := m.Node(m.Rank())
	if m.Rank() == p.firstRankOf(node) && p.sharedNodes()[node] {
		if err := m.Put(processorsKey(node), fmt.Sprintf("%d %s", machineProcessors(), options)); err != nil {
			return err
		}
	}
	if err := p.publishLocation(nil); err != nil {
		return err
	}
	if err := m.Fence(ctx); err != nil {
		return err
	}
	return p.readProcessors(ctx, options)
}

// JoinAsFailed publishes the reason for which this rank does not start and joins the first fence
// in the background, for at most timeout. The other ranks do not wait there. They find no address
// of the rank, and their calls with it return an ErrLost with the reason.
func (p *Placement) JoinAsFailed(reason error, timeout time.Duration) {
	vtime.Go(func() {
		ctx, cancel := vtime.WithTimeout(context.Background(), timeout)
		defer cancel()
		if p.publishLocation(reason) == nil {
			_ = p.manager.Fence(ctx) // the caller returns its own error
		}
	})
}

func processorsKey(node int) string { return fmt.Sprintf("processors/%d", node) }

func locationKey(rank int) string { return fmt.Sprintf("process/%d", rank) }

// publishLocation publishes host and process of this rank, and the reason if it does not start.
func (p *Placement) publishLocation(failed error) error {
	host, _ := os.Hostname()
	text := fmt.Sprintf("%s, pid %d", cmp.Or(host, "unknown host"), os.Getpid())
	if failed != nil {
		text = fmt.Sprintf("%s, not started: %v", text, failed)
	}
	return p.manager.Put(locationKey(p.manager.Rank()), text)
}

// sharedNodes returns the nodes with more than one rank.
func (p *Placement) sharedNodes() map[int]bool {
	seen, shared := map[int]bool{}, map[int]bool{}
	for r := range p.manager.Size() {
		node := p.manager.Node(r)
		if seen[node] {
			shared[node] = true
		}
		seen[node] = true
	}
	return shared
}

// firstRankOf returns the lowest rank on a node.
func (p *Placement) firstRankOf(node int) (rank int) {
	for p.manager.Node(rank) != node {
		rank++
	}
	return rank
}

// readProcessors reads the processors of the nodes with more than one rank.
func (p *Placement) readProcessors(ctx context.Context, options string) error {
	m := p.manager
	p.processors = map[int]int{}
	for node := range p.sharedNodes() {
		value, err := m.Get(ctx, processorsKey(node))
		if err != nil {
			first := p.firstRankOf(node)
			return fmt.Errorf("processors of node %d, which rank %d (%s) publishes: %w", node, first, p.DescribeRank(first), err)
		}
		count, published, _ := strings.Cut(value, " ")
		if p.processors[node], err = strconv.Atoi(count); err != nil || p.processors[node] < 1 {
			return fmt.Errorf("processors of node %d: %q is not a number", node, count)
		}
		if node == m.Node(m.Rank()) && published != options {
			return fmt.Errorf("options differ within the node: %s at this rank, %s at the first rank", options, published)
		}
	}
	return nil
}

// CountProcessors returns the number of processors that the ranks of a communicator of the given
// size have together. worldRank returns the rank in the job of a rank of the communicator.
func (p *Placement) CountProcessors(size int, worldRank func(rank int) int) (total int) {
	ranks := map[int]int{}
	for r := range size {
		ranks[p.manager.Node(worldRank(r))]++
	}
	for node, n := range ranks {
		if processors, ok := p.processors[node]; ok {
			n = min(n, processors)
		}
		total += n
	}
	return total
}

// OnOneNode reports whether the ranks of a communicator are on one node.
func (p *Placement) OnOneNode(size int, worldRank func(rank int) int) bool {
	for r := 1; r < size; r++ {
		if p.manager.Node(worldRank(r)) != p.manager.Node(worldRank(0)) {
			return false
		}
	}
	return true
}

// locationTimeout is the time in which the process manager must reply.
const locationTimeout = time.Second

// DescribeRank returns the host and the process id of a rank, and the reason if it has not
// started; "" if the process manager does not return them. It asks the process manager once, for
// at most a second.
func (p *Placement) DescribeRank(rank int) string {
	if text, ok := p.described.Load(rank); ok {
		return text.(string)
	}
	ctx, cancel := vtime.WithTimeout(context.Background(), locationTimeout)
	defer cancel()
	text, _ := p.manager.Get(ctx, locationKey(rank))
	p.described.Store(rank, text)
	return text
}
