package memory

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/wire"
	"github.com/stretchr/testify/require"
)

// trace runs three links that send to one another at random, and returns a log of all packets
// received.
func trace(t *testing.T, seed uint64) []byte {
	n := New(seed)
	var conns []*Conn
	for i, addr := range []netip.AddrPort{addrA, addrB, addrC} {
		conns = append(conns, attach(t, n, addr, Options{
			Delay: time.Duration(1+i) * time.Microsecond, Rate: 1e9, Queue: 20_000, NoGRO: i == 2,
		}))
	}
	var log bytes.Buffer
	batch, r := link.NewBatch(1<<16), link.NewDatagrams(2)
	talk := func(c *Conn) {
		batch.Reset()
		for range n.Rand().IntN(6) {
			to := conns[n.Rand().IntN(len(conns))].LocalAddr()
			appendPacket(batch, &wire.Path{Dst: to}, 100+100*n.Rand().IntN(3), n.Rand().Uint32())
		}
		require.NoError(t, c.WriteBatch(batch))
	}
	for i := range 20 {
		n.ScheduleAt(int64(i)*700, func() { talk(conns[i%3]) })
	}
	for at, ok := n.NextEvent(); ok && at < 1_000_000; at, ok = n.NextEvent() {
		n.AdvanceTo(at)
		for _, c := range conns {
			for c.Readable() {
				_, err := c.ReadBatch(r)
				require.NoError(t, err)
				for _, d := range r.Msgs() {
					fmt.Fprintf(&log, "%d %v %v %d %x\n", at, d.Src, c.LocalAddr(), d.ID, d.Buf)
				}
				talk(c)
			}
		}
	}
	return log.Bytes()
}

func TestOneSeedIsOneRun(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	first := trace(t, seed)
	require.Greater(t, bytes.Count(first, []byte("\n")), 20)
	require.Equal(t, first, trace(t, seed))
	require.NotEqual(t, first, trace(t, seed+1))
}
