package fabric_test

import (
	"context"
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/fabric/rdma"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// TestForeignConnections checks that connections, and datagrams that request one, are rejected if they are
// not from a rank of the job, for several handshakes, and that the ranks continue.
func TestForeignConnections(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	device := func() *rnic.Device {
		dev, err := rnic.Open(rnic.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, dev.Close()) })
		return dev
	}
	managers := pmi.NewLocal(2)
	var engines [2]*engine.Engine
	var both sync.WaitGroup
	for i, m := range managers {
		dev := device()
		both.Go(func() {
			var err error
			engines[i], err = engine.New(i, 2, func(h fabric.Host) (fabric.Fabric, error) { return rdma.New(dev, h, m, rdma.Options{}) })
			if err == nil {
				err = m.Fence(ctx)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	require.False(t, t.Failed())
	attended, leave := context.WithCancel(ctx)
	both.Go(func() { engines[1].PollWhenIdle(attended, engine.IdleInterval) })
	defer func() {
		leave()
		both.Wait()
		for _, e := range engines {
			both.Go(func() { _ = e.Close(ctx) })
		}
		both.Wait()
	}()

	where, err := managers[0].Get(ctx, "rdma-1")
	require.NoError(t, err)
	host, udp, ok := strings.Cut(where, "/")
	require.True(t, ok)
	at, err := netip.ParseAddrPort(host)
	require.NoError(t, err)
	port, err := strconv.ParseUint(udp, 10, 16)
	require.NoError(t, err)

	dev := device()
	manager, err := cm.New(dev, cm.Options{})
	require.NoError(t, err)
	defer manager.Close()
	pd, err := dev.AllocPD()
	require.NoError(t, err)
	cq, err := dev.CreateCQ(16)
	require.NoError(t, err)
	const magic = 0x4d504931
	ticket := func(magic uint32, rank, rail uint32) []byte {
		b := binary.BigEndian.AppendUint32(nil, magic)
		b = binary.BigEndian.AppendUint64(b, 0x5eed) // of another job
		b = binary.BigEndian.AppendUint32(b, rank)
		return binary.BigEndian.AppendUint32(b, rail)
	}
	for name, hello := range map[string][]byte{
		"nothing":          nil,
		"a few bytes":      []byte("hello"),
		"something else":   ticket(magic+1, 0, 0),
		"another job":      ticket(magic, 0, 0),
		"a rail of that":   ticket(magic, 0, 1),
		"a far rank":       ticket(magic, 1<<31, 0),
		"more than enough": append(ticket(magic, 0, 0), make([]byte, 30)...),
	} {
		qp, err := pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxSendWR: 1, MaxSendSGE: 1}})
		require.NoError(t, err)
		_, err = manager.Dial(ctx, at, qp, cm.DialOptions{PrivateData: hello, UDPPort: uint16(port)})
		var rejected *cm.RejectError
		require.ErrorAs(t, err, &rejected, name)
		require.NoError(t, qp.Close())
		_, err = manager.DialUD(ctx, at, cm.UDDialOptions{UDPPort: uint16(port), PrivateData: hello})
		var heard *cm.UDRejectError
		require.ErrorAs(t, err, &heard, name)
	}

	p := &pair{e: engines}
	key, hide := p.register(t, []byte("untouched"))
	defer hide()
	put, get := &protocol.Request{Dest: 1, Buf: []byte("written !")}, &protocol.Request{Dest: 1, Buf: make([]byte, 9)}
	p.do(func(c *protocol.Core) { c.Put(put, key) })
	p.wait(t, put)
	p.do(func(c *protocol.Core) { c.Get(get, key) })
	p.wait(t, get)
	require.NoError(t, get.Err)
	require.Equal(t, "written !", string(get.Buf))
}
