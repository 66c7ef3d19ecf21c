package rnic

import (
	"fmt"
	"math"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/verbs"
)

// pdTestHost is a device with one shard, whose lock is its only part of the engine.
type pdTestHost struct {
	attr   verbs.DeviceAttr
	gid    verbs.GID
	keys   *keyTable
	counts *quotas
	events *eventQueue
	freed  []*protectionDomain

	shard    sync.Mutex
	quiesced atomic.Int64
	closed   atomic.Bool
}

func newPDTestHost() *pdTestHost {
	h := &pdTestHost{
		attr: verbs.DeviceAttr{MaxMRSize: 1 << 40, MaxQP: 10, MaxMR: 20000, MaxMW: 20000, MaxAH: 10, MaxSRQ: 10,
			MaxSRQWR: 1 << 15, MaxSRQSGE: 16},
		gid:    verbs.GIDFromAddr(netip.MustParseAddr("10.0.0.1")),
		keys:   newKeyTable(newSource(1)),
		events: newEventQueue(),
	}
	h.counts = newQuotas(h.attr)
	return h
}

func (h *pdTestHost) QueryDevice() verbs.DeviceAttr  { return h.attr }
func (h *pdTestHost) keyTable() *keyTable            { return h.keys }
func (h *pdTestHost) quotas() *quotas                { return h.counts }
func (h *pdTestHost) shardCount() int                { return 1 }
func (h *pdTestHost) isClosed() bool                 { return h.closed.Load() }
func (h *pdTestHost) raiseEvent(ev verbs.AsyncEvent) { h.events.push(ev) }
func (h *pdTestHost) pdFreed(pd *protectionDomain)   { h.freed = append(h.freed, pd) }

func (h *pdTestHost) quiesceShards() {
	h.shard.Lock()
	defer h.shard.Unlock()
	h.quiesced.Add(1)
}

func (h *pdTestHost) QueryGID(port, index int) (verbs.GIDEntry, error) {
	if port != 1 || index != 0 {
		return verbs.GIDEntry{}, &verbs.OpError{Op: "query GID", Err: verbs.ErrInvalid, Detail: "there is port 1 with GID 0"}
	}
	return verbs.GIDEntry{GID: h.gid, Port: 1, Type: verbs.GIDRoCEv2}, nil
}

const allAccess = verbs.AccessLocalWrite | verbs.AccessRemote | verbs.AccessMWBind

func mustReg(t testing.TB, pd *protectionDomain, buf []byte, access verbs.AccessFlags) *memoryRegion {
	t.Helper()
	mr, err := pd.RegMR(buf, access)
	require.NoError(t, err)
	return mr.(*memoryRegion)
}

// aligned returns n bytes that start at a multiple of 8.
func aligned(n int) []byte {
	b := make([]byte, n+8)
	return b[-realAddr(b)&7:][:n:n]
}

func TestDeallocIsBusyWhileObjectsExist(t *testing.T) {
	host := newPDTestHost()
	pd := newPD(host)
	makers := map[string]func() (func() error, error){
		"memory region": func() (func() error, error) {
			mr, err := pd.RegMR(make([]byte, 1), 0)
			return mr.Close, err
		},
		"memory window": func() (func() error, error) {
			mw, err := pd.AllocMW()
			return mw.Close, err
		},
		"address handle": func() (func() error, error) {
			ah, err := pd.CreateAH(verbs.AHAttr{DGID: host.gid})
			return ah.Close, err
		},
		"shared receive queue": func() (func() error, error) {
			srq, err := pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: 1, MaxSGE: 1})
			return srq.Close, err
		},
		"queue pair": func() (func() error, error) {
			return func() error { pd.release(kindQP); return nil }, pd.addRef(kindQP, "create QP")
		},
	}
	for name, object := range makers {
		free, err := object()
		require.NoError(t, err)
		err = pd.Close()
		require.ErrorIs(t, err, verbs.ErrBusy)
		require.ErrorContains(t, err, "1 x "+name)
		require.NoError(t, free())
	}
	for k := range kinds {
		require.Zero(t, host.counts.inUse(k), k)
	}
	require.NoError(t, pd.Close())
	require.Equal(t, []*protectionDomain{pd}, host.freed)
	require.NoError(t, pd.Close())
	require.Len(t, host.freed, 1)
}

// makeAll tries to create one object of each kind and returns the errors.
func makeAll(pd *protectionDomain) map[string]error {
	errs := make(map[string]error)
	_, errs["MR"] = pd.RegMR(make([]byte, 1), 0)
	_, errs["MW"] = pd.AllocMW()
	_, errs["AH"] = pd.CreateAH(verbs.AHAttr{DGID: pd.host.(*pdTestHost).gid})
	_, errs["SRQ"] = pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: 1, MaxSGE: 1})
	errs["QP"] = pd.addRef(kindQP, "create QP")
	return errs
}

func TestNothingIsMadeFromWhatIsGone(t *testing.T) {
	freed := newPDTestHost()
	pd := newPD(freed)
	require.NoError(t, pd.Close())
	for name, err := range makeAll(pd) {
		require.ErrorIs(t, err, verbs.ErrClosed, name)
		require.ErrorContains(t, err, "protection domain is closed")
	}

	closed := newPDTestHost()
	pd = newPD(closed)
	closed.closed.Store(true)
	for name, err := range makeAll(pd) {
		require.ErrorIs(t, err, verbs.ErrClosed, name)
		require.ErrorContains(t, err, "device was closed")
	}
	for k := range kinds {
		require.Zero(t, freed.counts.inUse(k), k)
		require.Zero(t, closed.counts.inUse(k), k)
	}
}

func TestLimitsOfTheDevice(t *testing.T) {
	host := newPDTestHost()
	host.counts = newQuotas(verbs.DeviceAttr{})
	pd := newPD(host)
	for name, err := range makeAll(pd) {
		require.ErrorIs(t, err, verbs.ErrNoMemory, name)
	}
	require.NoError(t, pd.Close())
}

func TestKeySpaceUsedUp(t *testing.T) {
	host := newPDTestHost()
	pd := newPD(host)
	host.keys.live = maxRegions
	_, err := pd.RegMR(make([]byte, 1), 0)
	require.ErrorIs(t, err, verbs.ErrNoMemory)
	_, err = pd.AllocMW()
	require.ErrorIs(t, err, verbs.ErrNoMemory)
	require.NoError(t, pd.Close())
}

// TestFreeAfterDeviceClosed checks that objects may be closed in any order after their device.
func TestFreeAfterDeviceClosed(t *testing.T) {
	host := newPDTestHost()
	pd := newPD(host)
	mr := mustReg(t, pd, make([]byte, 8), allAccess)
	mw, err := pd.AllocMW()
	require.NoError(t, err)
	require.Equal(t, qp.NoFault, (*pdMemory)(pd).Bind(&verbs.BindMW{MW: mw, MR: mr, RKey: verbs.IncRKey(mw.RKey()),
		Addr: mr.Addr(), Length: 8, Access: verbs.AccessRemoteRead}, 1))
	srq, err := pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: 1, MaxSGE: 1})
	require.NoError(t, err)
	require.NoError(t, srq.(*sharedReceiveQueue).addQP(pd, "create QP"))

	host.closed.Store(true)
	require.NoError(t, pd.Close())
	require.NoError(t, mr.Close())
	require.NoError(t, mw.Close())
	require.NoError(t, srq.Close())
}

// TestFaults checks each reason to deny an access, in the order of the checks.
func TestFaults(t *testing.T) {
	host := newPDTestHost()
	pd, other := newPD(host), newPD(host)
	const size = 64
	mr := mustReg(t, pd, aligned(size), verbs.AccessLocalWrite|verbs.AccessRemoteWrite|verbs.AccessRemoteAtomic)
	readOnly := mustReg(t, pd, make([]byte, size), verbs.AccessRemoteRead)
	private := mustReg(t, pd, make([]byte, size), verbs.AccessLocalWrite)
	foreign := mustReg(t, other, make([]byte, size), allAccess)
	mw, err := pd.AllocMW()
	require.NoError(t, err)

	for _, c := range []struct {
		key  uint32
		at   uint64
		n    uint32
		want qp.Fault
	}{
		{mr.LKey(), mr.Addr(), size, qp.NoFault},
		{0, mr.Addr(), 1, qp.FaultKey},
		{mr.LKey() ^ 1, mr.Addr(), 1, qp.FaultKey},
		{mw.RKey(), mr.Addr(), 1, qp.FaultKey},
		{foreign.LKey(), foreign.Addr(), 1, qp.FaultDomain},
		{readOnly.LKey(), readOnly.Addr(), 1, qp.FaultAccess},
		{mr.LKey(), mr.Addr(), size + 1, qp.FaultBounds},
	} {
		mem, fault := (*pdMemory)(pd).Local(c.key, c.at, c.n, true)
		require.Equal(t, c.want, fault, "key 0x%x", c.key)
		require.Equal(t, fault == qp.NoFault, mem != nil)
	}
	_, fault := (*pdMemory)(pd).Local(readOnly.LKey(), readOnly.Addr(), size, false)
	require.Equal(t, qp.NoFault, fault)

	const write, read, atomic = verbs.AccessRemoteWrite, verbs.AccessRemoteRead, verbs.AccessRemoteAtomic
	for _, c := range []struct {
		key  uint32
		at   uint64
		n    uint32
		need verbs.AccessFlags
		want qp.Fault
	}{
		{mr.RKey(), mr.Addr(), size, write, qp.NoFault},
		{mr.RKey(), mr.Addr() + 8, 8, atomic, qp.NoFault},
		{0, mr.Addr(), 1, write, qp.FaultKey},
		{mr.RKey() ^ 0x80, mr.Addr(), 1, write, qp.FaultKey},
		{foreign.RKey(), foreign.Addr(), 1, write, qp.FaultDomain},
		{mw.RKey(), mr.Addr(), 1, write, qp.FaultUnbound},
		{mr.RKey(), mr.Addr(), 1, read, qp.FaultAccess},
		{readOnly.RKey(), readOnly.Addr(), 1, write, qp.FaultAccess},
		{private.LKey(), private.Addr(), 1, read, qp.FaultAccess},
		{mr.RKey(), mr.Addr() + size, 1, write, qp.FaultBounds},
		{mr.RKey(), mr.Addr() + 4, 8, atomic, qp.FaultMisalign},
	} {
		mem, fault := (*pdMemory)(pd).Remote(c.key, c.at, c.n, c.need, 7)
		require.Equal(t, c.want, fault, "key 0x%x, need %v", c.key, c.need)
		require.Equal(t, fault == qp.NoFault, mem != nil)
	}
}

func TestRangesDoNotOverflow(t *testing.T) {
	const size = 100
	mem := make([]byte, size)
	for _, base := range []uint64{0, 1, 1 << 40, math.MaxUint64 - size, math.MaxUint64 - size + 1} {
		r := &region{base: base, mem: mem}
		for _, c := range []struct {
			off uint64 // relative to base, may be negative
			n   uint32
			ok  bool
		}{
			{0, size, true}, {0, 0, true}, {size, 0, true}, {99, 1, true}, {40, 20, true},
			{0, size + 1, false}, {1, size, false}, {size, 1, false}, {size + 1, 0, false},
			{math.MaxUint64, 1, false}, {math.MaxUint64, 2, false}, {math.MaxUint64, 0, false}, {math.MaxUint64 - 99, size, false},
			{0, 1<<32 - 1, false}, {50, 1<<32 - 1, false}, {1 << 63, 1, false}, {1 << 32, 1, false},
		} {
			got, ok := r.slice(base+c.off, c.n)
			require.Equal(t, c.ok, ok, "base 0x%x, offset %d, %d bytes", base, int64(c.off), c.n)
			if ok {
				require.Len(t, got, int(c.n))
				require.Equal(t, len(got), cap(got))
			}
		}
	}
}

func TestUsersNamesKinds(t *testing.T) {
	pd := newPD(newPDTestHost())
	require.NoError(t, pd.addRef(kindQP, ""))
	require.NoError(t, pd.addRef(kindQP, ""))
	require.NoError(t, pd.addRef(kindAH, ""))
	require.Equal(t, "2 x queue pair, 1 x address handle", pd.describeRefs())
	for k := range kinds {
		require.False(t, strings.HasPrefix(fmt.Sprint(k), "%"), k)
	}
}

func TestMemoryDoesNotAllocate(t *testing.T) {
	pd := newPD(newPDTestHost())
	mr := mustReg(t, pd, make([]byte, 4096), allAccess)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, f1 := (*pdMemory)(pd).Local(mr.LKey(), mr.Addr(), 4096, true)
		_, f2 := (*pdMemory)(pd).Remote(mr.RKey(), mr.Addr(), 4096, verbs.AccessRemoteWrite, 1)
		_, f3 := (*pdMemory)(pd).Remote(mr.RKey()^1, mr.Addr(), 4096, verbs.AccessRemoteWrite, 1)
		if f1 != qp.NoFault || f2 != qp.NoFault || f3 != qp.FaultKey {
			t.Fatal(f1, f2, f3)
		}
	}))
}

func BenchmarkRemote(b *testing.B) {
	for _, regions := range []int{1, 10000} {
		b.Run(fmt.Sprintf("regions=%d", regions), func(b *testing.B) {
			pd := newPD(newPDTestHost())
			mrs := make([]*memoryRegion, regions)
			for i := range mrs {
				mrs[i] = mustReg(b, pd, make([]byte, 64), allAccess)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				mr := mrs[i]
				if i++; i == len(mrs) {
					i = 0
				}
				if _, f := (*pdMemory)(pd).Remote(mr.key, mr.base, 64, verbs.AccessRemoteWrite, 1); f != qp.NoFault {
					b.Fatal(f)
				}
			}
		})
	}
}

func TestQuotas(t *testing.T) {
	q := newQuotas(verbs.DeviceAttr{MaxPD: 1, MaxCQ: 2, MaxQP: 3, MaxSRQ: 4, MaxMR: 5, MaxMW: 6, MaxAH: 7})
	for k, most := range map[kind]int{kindPD: 1, kindCQ: 2, kindQP: 3, kindSRQ: 4, kindMR: 5, kindMW: 6, kindAH: 7} {
		for range most {
			require.NoError(t, q.reserve(k, "make"))
		}
		err := q.reserve(k, "make")
		require.ErrorIs(t, err, verbs.ErrNoMemory)
		require.ErrorContains(t, err, k.String())
		require.Equal(t, most, q.inUse(k))

		q.release(k)
		require.Equal(t, most-1, q.inUse(k))
		require.NoError(t, q.reserve(k, "make"))
	}
}

func TestQuotasHoldWhenTakenAtOnce(t *testing.T) {
	const most, takers = 10, 50
	q := newQuotas(verbs.DeviceAttr{MaxAH: most})
	var got atomic.Int64
	var wg sync.WaitGroup
	for range takers {
		wg.Go(func() {
			if q.reserve(kindAH, "make") == nil {
				got.Add(1)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, most, got.Load())
	require.Equal(t, most, q.inUse(kindAH))
}
