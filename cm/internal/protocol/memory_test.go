package protocol

import (
	"net/netip"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire/mad"
)

// TestMemory checks that the state of a peer, half-open or in TIMEWAIT, is small.
func TestMemory(t *testing.T) {
	const many = 20_000
	r := newRig(t, Config{MaxTimewait: many})
	require.True(t, r.m.Listen(served+1, ServiceOptions{RC: true, Backlog: many}))
	heap := func() int64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	before := heap()
	var b [mad.Size]byte
	var ids []uint32
	for i := range uint32(many) {
		q := r.reqOf(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), rocePort))
		q.ServiceID++
		mad.Put(&b, mad.Header{TID: 1, Attr: mad.AttrREQ}, q)
		require.Equal(t, DropNone, r.m.Handle(r.now, netip.AddrFrom16(q.Primary.LocalGID), b[:]))
		e := r.nextEvent(EventRequest)
		ids = append(ids, e.ID)
		require.True(t, r.m.Accept(r.now, e.ID, mad.REP{QPN: 1}))
		r.drain()
		r.requireSilence()
	}
	perHalfOpen := (heap() - before) / many
	t.Logf("%d bytes a half-open connection", perHalfOpen)
	require.Less(t, perHalfOpen, int64(1024))
	for _, id := range ids {
		r.m.Abandon(r.now, id)
		r.drain()
	}
	require.Equal(t, many, r.m.Stats().TimeWait)
	perTimewait := (heap() - before) / many
	t.Logf("%d bytes one in TIMEWAIT", perTimewait)
	require.Less(t, perTimewait, int64(640))
	r.advance(100 * sec)
	r.m.empty(t)
}
