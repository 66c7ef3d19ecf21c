package qp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire"
)

// TestSelectivePool checks that queue pairs with one pool use the same memory in turns, and that the
// pool keeps a bounded part of it.
func TestSelectivePool(t *testing.T) {
	pool := new(SelectivePool)
	p := connect(t, withAttr(selectively), withConfig(func(c *Config) { c.Pool = pool }))
	lose := func() {
		p.a.post(p.now, p.write(1, 0, 0, 1024))
		pkts := p.drain(p.a)
		p.deliver(p.b, pkts[1:]...)
		require.Empty(t, pool.kept)
		p.deliver(p.b, pkts[0])
		p.exchange()
		require.Equal(t, []string{"1 RDMA_WRITE len=1024"}, p.a.takeCompletions())
	}
	lose()
	require.Len(t, pool.kept, 1)
	kept, packets := pool.kept[0], len(pool.packets)
	require.NotZero(t, packets)
	lose()
	require.Len(t, pool.kept, 1)
	require.Same(t, kept, pool.kept[0])
	require.Len(t, pool.packets, packets)

	for range 2 * maxPooledPackets {
		pool.freePacket(new(keptRequest))
	}
	require.Len(t, pool.packets, maxPooledPackets)
	for range 2 * maxPooledKept {
		pool.freeKept(&keptRequests{pool: pool, requests: map[wire.PSN]*keptRequest{}})
	}
	require.Len(t, pool.kept, maxPooledKept)
	pool.kept = nil
	pool.freeKept(&keptRequests{pool: pool, most: maxPooledRequests + 1})
	require.Empty(t, pool.kept, "a map of many requests does not shrink")
}
