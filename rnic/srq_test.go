package rnic

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/verbs"
)

type fataler interface {
	require.TestingT
	Helper()
}

func mustSRQ(t fataler, pd *protectionDomain, attr verbs.SRQInitAttr) *sharedReceiveQueue {
	t.Helper()
	srq, err := pd.CreateSRQ(attr)
	require.NoError(t, err)
	return srq.(*sharedReceiveQueue)
}

// limitEvents returns the number of pending events that this queue reached its limit; there must be
// no others.
func (h *pdTestHost) limitEvents(t fataler, srq *sharedReceiveQueue) (n int) {
	t.Helper()
	for ev, ok := h.events.tryPop(); ok; ev, ok = h.events.tryPop() {
		require.Equal(t, verbs.AsyncEvent{Type: verbs.EventSRQLimitReached, SRQ: srq}, ev)
		n++
	}
	return n
}

func TestSRQDeliversInOrder(t *testing.T) {
	srq := mustSRQ(t, newPD(newPDTestHost()), verbs.SRQInitAttr{MaxWR: 100, MaxSGE: 2})
	list := []verbs.SGE{{Addr: 1, Length: 2, LKey: 3}, {Addr: 4, Length: 5, LKey: 6}}
	wrs := []verbs.RecvWR{{WRID: 10, SGList: list}, {WRID: 11}, {WRID: 12, SGList: list[:1]}}
	n, err := srq.PostRecv(wrs)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	want := append([]verbs.SGE(nil), list...)
	clear(list)
	clear(wrs) // the caller's again

	var wqe qp.RecvWQE
	require.True(t, (*sharedQueue)(srq).Pop(&wqe))
	require.Equal(t, qp.RecvWQE{ID: 10, SGList: want}, wqe)
	require.True(t, (*sharedQueue)(srq).Pop(&wqe))
	require.EqualValues(t, 11, wqe.ID)
	require.Empty(t, wqe.SGList)
	require.True(t, (*sharedQueue)(srq).Pop(&wqe))
	require.Equal(t, qp.RecvWQE{ID: 12, SGList: want[:1]}, wqe)
	require.False(t, (*sharedQueue)(srq).Pop(&wqe))
}

func TestSRQPartialAcceptance(t *testing.T) {
	srq := mustSRQ(t, newPD(newPDTestHost()), verbs.SRQInitAttr{MaxWR: 3, MaxSGE: 1})
	n, err := srq.PostRecv([]verbs.RecvWR{{WRID: 1}, {WRID: 2, SGList: make([]verbs.SGE, 2)}, {WRID: 3}})
	require.Equal(t, 1, n)
	require.ErrorIs(t, err, verbs.ErrLimit)
	require.ErrorContains(t, err, "receive 2 has 2 elements")

	n, err = srq.PostRecv([]verbs.RecvWR{{WRID: 4}, {WRID: 5}, {WRID: 6}})
	require.Equal(t, 2, n)
	require.ErrorIs(t, err, verbs.ErrQueueFull)
	n, err = srq.PostRecv(nil)
	require.NoError(t, err)
	require.Zero(t, n)

	var wqe qp.RecvWQE
	for _, id := range []uint64{1, 4, 5} {
		require.True(t, (*sharedQueue)(srq).Pop(&wqe))
		require.Equal(t, id, wqe.ID)
	}
	require.False(t, (*sharedQueue)(srq).Pop(&wqe))
}

func TestSRQMisuse(t *testing.T) {
	host := newPDTestHost()
	pd := newPD(host)
	for _, c := range []struct {
		attr verbs.SRQInitAttr
		err  error
		says string
	}{
		{verbs.SRQInitAttr{}, verbs.ErrInvalid, "MaxWR is 0"},
		{verbs.SRQInitAttr{MaxWR: -1}, verbs.ErrInvalid, "MaxWR is -1"},
		{verbs.SRQInitAttr{MaxWR: 1<<15 + 1}, verbs.ErrLimit, "limit of the device is 32768"},
		{verbs.SRQInitAttr{MaxWR: 1, MaxSGE: -1}, verbs.ErrInvalid, "MaxSGE is -1"},
		{verbs.SRQInitAttr{MaxWR: 1, MaxSGE: 17}, verbs.ErrLimit, "limit of the device is 16"},
		{verbs.SRQInitAttr{MaxWR: 1, Limit: 2}, verbs.ErrInvalid, "Limit is 2"},
		{verbs.SRQInitAttr{MaxWR: 1, Limit: -1}, verbs.ErrInvalid, "Limit is -1"},
	} {
		srq, err := pd.CreateSRQ(c.attr)
		require.Nil(t, srq)
		require.ErrorIs(t, err, c.err)
		require.ErrorContains(t, err, "create SRQ")
		require.ErrorContains(t, err, c.says)
	}

	srq := mustSRQ(t, pd, verbs.SRQInitAttr{MaxWR: 10, Limit: 3})
	_, err := srq.PostRecv(make([]verbs.RecvWR, 5))
	require.NoError(t, err)
	for _, c := range []struct {
		attr verbs.SRQAttr
		mask verbs.SRQAttrMask
		err  error
		says string
	}{
		{verbs.SRQAttr{MaxWR: 4}, verbs.SRQMaxWR, verbs.ErrInvalid, "5 receives are posted"},
		{verbs.SRQAttr{MaxWR: 1 << 20}, verbs.SRQMaxWR, verbs.ErrLimit, "limit of the device is 32768"},
		{verbs.SRQAttr{Limit: 11}, verbs.SRQLimit, verbs.ErrInvalid, "Limit is 11"},
		{verbs.SRQAttr{MaxWR: 6, Limit: 7}, verbs.SRQMaxWR | verbs.SRQLimit, verbs.ErrInvalid, "Limit is 7"},
		{verbs.SRQAttr{MaxWR: 20, Limit: 7}, 1 << 7, verbs.ErrInvalid, "unknown attributes"},
	} {
		err := srq.Modify(c.attr, c.mask)
		require.ErrorIs(t, err, c.err)
		require.ErrorContains(t, err, "modify SRQ")
		require.ErrorContains(t, err, c.says)
	}
	attr, err := srq.Query()
	require.NoError(t, err)
	require.Equal(t, verbs.SRQAttr{MaxWR: 10, Limit: 3}, attr, "a refused change changes nothing")
}

func TestSRQLimitFiresOnce(t *testing.T) {
	host := newPDTestHost()
	srq := mustSRQ(t, newPD(host), verbs.SRQInitAttr{MaxWR: 10, MaxSGE: 1, Limit: 3})
	var wqe qp.RecvWQE
	post := func(n int) {
		_, err := srq.PostRecv(make([]verbs.RecvWR, n))
		require.NoError(t, err)
	}
	post(5)
	(*sharedQueue)(srq).Pop(&wqe)
	(*sharedQueue)(srq).Pop(&wqe)
	require.Zero(t, host.limitEvents(t, srq), "3 are left, not fewer than 3")
	(*sharedQueue)(srq).Pop(&wqe)
	require.Equal(t, 1, host.limitEvents(t, srq))
	attr, err := srq.Query()
	require.NoError(t, err)
	require.Zero(t, attr.Limit, "disarmed")
	post(5)
	for (*sharedQueue)(srq).Pop(&wqe) {
	}
	require.Zero(t, host.limitEvents(t, srq), "one shot")

	require.NoError(t, srq.Modify(verbs.SRQAttr{Limit: 1}, verbs.SRQLimit))
	require.Zero(t, host.limitEvents(t, srq), "arming alone takes nothing")
	require.False(t, (*sharedQueue)(srq).Pop(&wqe))
	require.Equal(t, 1, host.limitEvents(t, srq), "a message found nothing")

	require.NoError(t, srq.Modify(verbs.SRQAttr{Limit: 1}, verbs.SRQLimit))
	require.NoError(t, srq.Modify(verbs.SRQAttr{}, verbs.SRQLimit))
	require.False(t, (*sharedQueue)(srq).Pop(&wqe))
	require.Zero(t, host.limitEvents(t, srq), "0 disarms")
}

func TestSRQResize(t *testing.T) {
	srq := mustSRQ(t, newPD(newPDTestHost()), verbs.SRQInitAttr{MaxWR: 100})
	post := func(from, n int) (int, error) {
		wrs := make([]verbs.RecvWR, n)
		for i := range wrs {
			wrs[i].WRID = uint64(from + i)
		}
		return srq.PostRecv(wrs)
	}
	_, err := post(0, 100)
	require.NoError(t, err)
	var wqe qp.RecvWQE
	for range 95 {
		require.True(t, (*sharedQueue)(srq).Pop(&wqe))
	}
	_, err = post(100, 5)
	require.NoError(t, err)

	require.NoError(t, srq.Modify(verbs.SRQAttr{MaxWR: 10}, verbs.SRQMaxWR))
	require.Equal(t, 10, srq.queue.Cap(), "memory is given back")
	n, err := post(105, 1)
	require.Zero(t, n)
	require.ErrorIs(t, err, verbs.ErrQueueFull)
	require.NoError(t, srq.Modify(verbs.SRQAttr{MaxWR: 12}, verbs.SRQMaxWR))
	n, _ = post(105, 3)
	require.Equal(t, 2, n)
	for id := uint64(95); id < 107; id++ {
		require.True(t, (*sharedQueue)(srq).Pop(&wqe))
		require.Equal(t, id, wqe.ID)
	}
	require.False(t, (*sharedQueue)(srq).Pop(&wqe))
}

func TestSRQDestroy(t *testing.T) {
	host := newPDTestHost()
	pd := newPD(host)
	srq := mustSRQ(t, pd, verbs.SRQInitAttr{MaxWR: 4, MaxSGE: 1, Limit: 1})
	require.ErrorIs(t, srq.addQP(newPD(host), "create QP"), verbs.ErrDomain)
	require.NoError(t, srq.addQP(pd, "create QP"))
	require.NoError(t, srq.addQP(pd, "create QP"))
	srq.removeQP()
	require.ErrorIs(t, srq.Close(), verbs.ErrBusy)
	srq.removeQP()
	_, err := srq.PostRecv(make([]verbs.RecvWR, 2))
	require.NoError(t, err)
	require.NoError(t, srq.Close())

	require.NoError(t, srq.Close())
	_, err = srq.PostRecv(make([]verbs.RecvWR, 1))
	require.ErrorIs(t, err, verbs.ErrClosed)
	_, err = srq.Query()
	require.ErrorIs(t, err, verbs.ErrClosed)
	require.ErrorIs(t, srq.Modify(verbs.SRQAttr{MaxWR: 5}, verbs.SRQMaxWR), verbs.ErrClosed)
	require.ErrorIs(t, srq.addQP(pd, "create QP"), verbs.ErrClosed)
	require.False(t, (*sharedQueue)(srq).Pop(new(qp.RecvWQE)))
	require.Zero(t, host.limitEvents(t, srq), "no events of what is gone")
	require.NoError(t, pd.Close())
}

func TestSRQAfterDeviceClosed(t *testing.T) {
	host := newPDTestHost()
	srq := mustSRQ(t, newPD(host), verbs.SRQInitAttr{MaxWR: 4})
	host.closed.Store(true)
	_, err := srq.PostRecv(make([]verbs.RecvWR, 1))
	require.ErrorIs(t, err, verbs.ErrClosed)
	require.NoError(t, srq.Close())
}

// TestSRQAgainstModel compares posts, pops and changes in any order with a slice.
func TestSRQAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		host := newPDTestHost()
		maxWR, limit := 50, rapid.IntRange(0, 20).Draw(t, "limit")
		srq := mustSRQ(t, newPD(host), verbs.SRQInitAttr{MaxWR: maxWR, MaxSGE: 3, Limit: limit})
		var model []verbs.RecvWR
		var id uint64
		var wqe qp.RecvWQE
		t.Repeat(map[string]func(*rapid.T){
			"post": func(t *rapid.T) {
				wrs := make([]verbs.RecvWR, rapid.IntRange(0, 20).Draw(t, "receives"))
				for i := range wrs {
					id++
					wrs[i] = verbs.RecvWR{WRID: id, SGList: make([]verbs.SGE, rapid.IntRange(0, 3).Draw(t, "elements"))}
					for j := range wrs[i].SGList {
						wrs[i].SGList[j] = verbs.SGE{Addr: id, Length: uint32(j), LKey: 7}
					}
				}
				n, err := srq.PostRecv(wrs)
				require.Equal(t, min(len(wrs), maxWR-len(model)), n)
				require.Equal(t, n < len(wrs), err != nil)
				model = append(model, wrs[:n]...)
			},
			"take": func(t *rapid.T) {
				for range rapid.IntRange(1, 20).Draw(t, "takes") {
					got := (*sharedQueue)(srq).Pop(&wqe)
					require.Equal(t, len(model) > 0, got)
					if got {
						require.Equal(t, model[0].WRID, wqe.ID)
						require.Equal(t, model[0].SGList, append([]verbs.SGE{}, wqe.SGList...))
						model = model[1:]
					}
					fires := 0
					if len(model) < limit {
						fires, limit = 1, 0
					}
					require.Equal(t, fires, host.limitEvents(t, srq))
				}
			},
			"modify": func(t *rapid.T) {
				size, arm := rapid.IntRange(1, 80).Draw(t, "size"), rapid.IntRange(0, 30).Draw(t, "arm")
				err := srq.Modify(verbs.SRQAttr{MaxWR: size, Limit: arm}, verbs.SRQMaxWR|verbs.SRQLimit)
				require.Equal(t, size >= len(model) && arm <= size, err == nil)
				if err == nil {
					maxWR, limit = size, arm
				}
			},
			"": func(t *rapid.T) {
				attr, err := srq.Query()
				require.NoError(t, err)
				require.Equal(t, verbs.SRQAttr{MaxWR: maxWR, MaxSGE: 3, Limit: limit}, attr)
			},
		})
	})
}

// TestSRQIsShared checks that every receive is consumed once, by any shard.
func TestSRQIsShared(t *testing.T) {
	const total, takers = 4000, 3
	host := newPDTestHost()
	srq := mustSRQ(t, newPD(host), verbs.SRQInitAttr{MaxWR: 64, MaxSGE: 1, Limit: 1})
	var wg sync.WaitGroup
	taken := make(chan uint64, total)
	for range takers {
		wg.Go(func() {
			var wqe qp.RecvWQE
			for {
				if !(*sharedQueue)(srq).Pop(&wqe) {
					continue
				}
				if wqe.ID == total {
					return
				}
				taken <- wqe.ID
			}
		})
	}
	post := func(id uint64) {
		wr := []verbs.RecvWR{{WRID: id}}
		for n := 0; n == 0; n, _ = srq.PostRecv(wr) {
		}
	}
	for id := range uint64(total) {
		post(id)
	}
	for range takers {
		post(total) // the end
	}
	wg.Wait()
	close(taken)
	seen := make(map[uint64]bool)
	for id := range taken {
		require.False(t, seen[id])
		seen[id] = true
	}
	require.Len(t, seen, total)
	require.Equal(t, 1, host.limitEvents(t, srq))
}

// TestSRQReceiveOutlivesItsQueuePair checks that a receive that a closed queue pair has not
// completed returns to its queue, even to a full one, and is consumed by another.
func TestSRQReceiveOutlivesItsQueuePair(t *testing.T) {
	for what, leave := range map[string]func(q verbs.QP) error{
		"destroy": verbs.QP.Close,
		"reset":   func(q verbs.QP) error { return q.Modify(verbs.QPAttr{State: verbs.StateReset}, verbs.AttrState) },
	} {
		t.Run(what, func(t *testing.T) {
			a, b := pairOf(t, Options{}, verbs.UD)
			srq, err := b.pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: 1, MaxSGE: 1})
			require.NoError(t, err)
			receiver := func() verbs.QP {
				q := b.newQPWith(t, verbs.QPInitAttr{Type: verbs.UD, SRQ: srq})
				require.NoError(t, verbs.ActivateUD(q, qkey, 1))
				return q
			}
			send := func(to verbs.QP, n int) {
				a.post(t, verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{a.mr.SGE(0, n)},
					AH: a.handle(t, b.dev), RemoteQPN: to.Num(), RemoteQKey: qkey})
				a.poll1(t)
			}
			post := func(id uint64) {
				_, err := srq.PostRecv([]verbs.RecvWR{{WRID: id, SGList: []verbs.SGE{b.mr.SGE(0, 44)}}})
				require.NoError(t, err)
			}
			post(77)
			q := receiver()
			send(q, 100) // too long for it
			require.Eventually(t, func() bool { b.dev.Progress(); return b.dev.Stats().Drops["too_big_for_buffer"] == 1 }, patience, time.Millisecond)
			post(78)
			require.NoError(t, leave(q))
			_, err = srq.PostRecv([]verbs.RecvWR{{}})
			require.ErrorIs(t, err, verbs.ErrQueueFull)
			require.NoError(t, srq.Modify(verbs.SRQAttr{Limit: 1}, verbs.SRQLimit), "of a queue that is one over its size")
			q = receiver()
			for id := uint64(77); id < 79; id++ {
				send(q, 4)
				require.Equal(t, id, b.poll1(t).WRID)
			}
		})
	}
}

// postAndPop posts a list of receives and pops them all.
func postAndPop(srq *sharedReceiveQueue, wrs []verbs.RecvWR, wqe *qp.RecvWQE) bool {
	if n, err := srq.PostRecv(wrs); n != len(wrs) || err != nil {
		return false
	}
	for range wrs {
		if !(*sharedQueue)(srq).Pop(wqe) {
			return false
		}
	}
	return true
}

func TestSRQDoesNotAllocate(t *testing.T) {
	srq := mustSRQ(t, newPD(newPDTestHost()), verbs.SRQInitAttr{MaxWR: 48, MaxSGE: 4})
	var wqe qp.RecvWQE
	wrs := make([]verbs.RecvWR, 32)
	for i := range wrs {
		wrs[i].SGList = make([]verbs.SGE, 4)
	}
	for range 4 { // every slot once
		require.True(t, postAndPop(srq, wrs, &wqe))
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if !postAndPop(srq, wrs, &wqe) {
			t.Fatal("refused")
		}
	}))
}

func BenchmarkSRQ(b *testing.B) {
	srq := mustSRQ(b, newPD(newPDTestHost()), verbs.SRQInitAttr{MaxWR: 64, MaxSGE: 1})
	var wqe qp.RecvWQE
	wrs := make([]verbs.RecvWR, 32)
	for i := range wrs {
		wrs[i].SGList = make([]verbs.SGE, 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		if !postAndPop(srq, wrs, &wqe) {
			b.Fatal("refused")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(wrs)), "ns/receive")
}
