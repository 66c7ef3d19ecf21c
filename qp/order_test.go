package qp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// TestCompletionOrder checks that completions are in posting order, and that unsignaled successes
// have none.
func TestCompletionOrder(t *testing.T) {
	p := connect(t)
	p.b.recv(20, 0, 8)
	p.b.recv(21, 0, 8)
	p.a.post(p.now,
		p.write(1, 0, 4096, 8), unsignaled(p.read(2, 0, 0, 600)), p.fetchAdd(3, 8192, 0, 1), unsignaled(p.send(4, 0, 8)),
		p.cmpSwap(5, 8192, 0, 0, 0), p.read(6, 0, 0, 8), unsignaled(p.write(7, 0, 4096, 8)), p.send(8, 0, 8))
	p.exchange()
	require.Equal(t, []string{
		"1 RDMA_WRITE len=8", "3 FETCH_ADD len=8", "5 COMP_SWAP len=8", "6 RDMA_READ len=8", "8 SEND len=8",
	}, p.a.takeCompletions())
	send, _ := p.a.Queued()
	require.Zero(t, send)
}

// TestSignalAll checks that with sq_sig_all every request has a completion.
func TestSignalAll(t *testing.T) {
	p := connect(t, withConfig(func(c *Config) { c.SignalAll = true }))
	p.a.post(p.now, unsignaled(p.write(1, 0, 0, 8)), unsignaled(p.write(2, 0, 0, 8)))
	p.exchange()
	require.Equal(t, []string{"1 RDMA_WRITE len=8", "2 RDMA_WRITE len=8"}, p.a.takeCompletions())
}

// TestWritesOvertakeReadsOnTheWireOnly checks that later writes are sent while a read is
// outstanding, but complete after it.
func TestWritesOvertakeReadsOnTheWireOnly(t *testing.T) {
	p := connect(t)
	p.a.post(p.now, p.read(1, 0, 0, 8), p.write(2, 0, 4096, 8))
	pkts := p.drain(p.a)
	require.Len(t, pkts, 2)
	p.deliver(p.b, pkts...)
	resp := p.drain(p.b)
	p.deliver(p.a, resp[0])
	require.Equal(t, []string{"1 RDMA_READ len=8"}, p.a.takeCompletions())
	p.deliver(p.a, resp[1])
	require.Equal(t, []string{"2 RDMA_WRITE len=8"}, p.a.takeCompletions())
}

// TestFence checks that a fenced request waits for earlier reads and atomics, and not for sends and
// writes.
func TestFence(t *testing.T) {
	for _, kind := range []string{"read", "atomic"} {
		p := connect(t)
		wr := p.read(2, 0, 0, 600)
		if kind == "atomic" {
			wr = p.fetchAdd(2, 0, 0, 1)
		}
		p.a.post(p.now, p.write(1, 0, 4096, 8), wr, p.write(3, 0, 4096, 8), withFlags(p.write(4, 0, 4096, 8), verbs.SendFence), p.write(5, 0, 4096, 8))
		require.Len(t, p.drain(p.a), 3)
		p.deliver(p.b, p.response(p.a, wire.RCWriteMiddle, 9, 0, nil)) // any packet
		p.exchange()
		p = connect(t)
		p.a.post(p.now, p.write(1, 0, 4096, 8), withFlags(p.write(4, 0, 4096, 8), verbs.SendFence))
		require.Len(t, p.drain(p.a), 2, "writes do not hold a fence")
	}
}

// TestFenceHoldsThroughARetry checks that a fence waits for the last byte of the read, also if the
// read is retransmitted.
func TestFenceHoldsThroughARetry(t *testing.T) {
	p := connect(t, withPeerBuffer)
	p.a.post(p.now, p.read(1, 0, 0, 600), withFlags(p.write(2, 0, 0, 8), verbs.SendFence))
	p.deliver(p.b, p.drain(p.a)...)
	resp := p.drain(p.b)
	p.deliver(p.a, resp[0], resp[1])
	require.Empty(t, p.drain(p.a))
	p.advanceToDeadline(p.a) // a probe
	require.Equal(t, []string{"READ_REQUEST 2 @200+88 A"}, p.describePackets(p.a, p.drain(p.a)))
	require.Empty(t, p.drain(p.a))
	p.deliver(p.a, resp[2])
	require.Equal(t, []string{"WRITE_ONLY 3 len=8 @0+8 A"}, p.describePackets(p.a, p.drain(p.a)))
}

// bind returns a request that binds window key of n to a part of its region.
func bind(id uint64, n *node, key uint32, off, length int, access verbs.AccessFlags) verbs.SendWR {
	return verbs.SendWR{WRID: id, Opcode: verbs.WRBindMW, Flags: verbs.SendSignaled,
		Bind: verbs.BindMW{RKey: key, Addr: n.base + uint64(off), Length: uint64(length), Access: access}}
}

// TestLocalOperations checks that BIND takes effect in posting order without the network, that
// LOCAL_INV waits for all earlier requests, and that both complete in order.
func TestLocalOperations(t *testing.T) {
	p := connect(t)
	win := p.a.mem.window(p.a.key)
	p.a.post(p.now,
		p.write(1, 0, 0, 8), bind(2, p.a, win, 0, 64, verbs.AccessRemoteRead), p.write(3, 0, 0, 8),
		verbs.SendWR{WRID: 4, Opcode: verbs.WRLocalInv, Flags: verbs.SendSignaled, InvKey: win}, p.write(5, 0, 0, 8))
	pkts := p.drain(p.a)
	require.Len(t, pkts, 2, "what is behind LOCAL_INV waits")
	require.Equal(t, p.a.Num(), p.a.mem.regions[win].bound)
	require.Empty(t, p.a.takeCompletions(), "BIND completes behind the write before it")
	p.deliver(p.b, pkts...)
	p.exchange()
	require.Zero(t, p.a.mem.regions[win].bound)
	require.Equal(t, []string{
		"1 RDMA_WRITE len=8", "2 BIND_MW len=0", "3 RDMA_WRITE len=8", "4 LOCAL_INV len=0", "5 RDMA_WRITE len=8",
	}, p.a.takeCompletions())
}

// TestLocalOperationsAmongRetries checks that local operations alone in the queue complete at once,
// also if they are posted between packets that are retransmitted.
func TestLocalOperationsAmongRetries(t *testing.T) {
	p := connect(t)
	win := p.a.mem.window(p.a.key)
	p.a.post(p.now, bind(1, p.a, win, 0, 64, verbs.AccessRemoteRead))
	require.Empty(t, p.drain(p.a))
	require.Equal(t, []string{"1 BIND_MW len=0"}, p.a.takeCompletions())

	other := p.a.mem.window(p.a.key)
	p.a.post(p.now, p.write(2, 0, 0, 8), bind(3, p.a, other, 0, 64, verbs.AccessRemoteRead), p.read(4, 0, 0, 8))
	p.drain(p.a)
	p.advanceToDeadline(p.a)
	for range 3 {
		p.exchange()
	}
	require.Equal(t, []string{"2 RDMA_WRITE len=8", "3 BIND_MW len=0", "4 RDMA_READ len=8"}, p.a.takeCompletions())
}

// TestLocalOperationsFail checks that a failed BIND or LOCAL_INV is MW_BIND_ERR, after the earlier
// requests.
func TestLocalOperationsFail(t *testing.T) {
	for _, wr := range []verbs.SendWR{
		{WRID: 2, Opcode: verbs.WRBindMW, Bind: verbs.BindMW{RKey: 0xbad}},
		{WRID: 2, Opcode: verbs.WRLocalInv, InvKey: 0xbad},
	} {
		p := connect(t)
		p.a.post(p.now, p.write(1, 0, 0, 8), wr, p.write(3, 0, 0, 8))
		p.exchange()
		require.Equal(t, []string{"1 RDMA_WRITE len=8", "2 MW_BIND_ERR", "3 WR_FLUSH_ERR"}, p.a.takeCompletions())
		require.Equal(t, verbs.StateErr, p.a.State())
	}
}
