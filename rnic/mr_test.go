package rnic

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/verbs"
)

func TestRegMR(t *testing.T) {
	pd := newPD(newPDTestHost())
	buf := make([]byte, 100, 200)
	mr := mustReg(t, pd, buf, verbs.AccessLocalWrite|verbs.AccessRemoteRead)
	require.Equal(t, uint64(uintptr(unsafe.Pointer(&buf[0]))), mr.Addr())
	require.Equal(t, 100, mr.Len())
	require.Same(t, &buf[0], &mr.Bytes()[0])
	require.Equal(t, 100, cap(mr.Bytes()), "only what was registered")
	require.Equal(t, mr.LKey(), mr.RKey())
	require.Equal(t, verbs.AccessLocalWrite|verbs.AccessRemoteRead, mr.Access())

	local := mustReg(t, pd, buf, verbs.AccessLocalWrite|verbs.AccessMWBind)
	require.NotZero(t, local.LKey())
	require.Zero(t, local.RKey(), "no remote access was granted")
}

func TestRegMRAt(t *testing.T) {
	pd := newPD(newPDTestHost())
	buf := aligned(64)
	const iova = 0x1234_0000_0000_1000
	mr, err := pd.RegMRAt(buf, iova, verbs.AccessLocalWrite|verbs.AccessRemoteWrite|verbs.AccessRemoteAtomic)
	require.NoError(t, err)
	require.Equal(t, uint64(iova), mr.Addr())
	require.Equal(t, verbs.SGE{Addr: iova + 8, Length: 16, LKey: mr.LKey()}, mr.SGE(8, 16))

	mem, fault := (*pdMemory)(pd).Remote(mr.RKey(), iova+8, 8, verbs.AccessRemoteAtomic, 1)
	require.Equal(t, qp.NoFault, fault)
	require.Same(t, &buf[8], &mem[0])
	_, fault = (*pdMemory)(pd).Remote(mr.RKey(), iova+4, 8, verbs.AccessRemoteAtomic, 1)
	require.Equal(t, qp.FaultMisalign, fault)
	_, fault = (*pdMemory)(pd).Local(mr.LKey(), iova-1, 1, false)
	require.Equal(t, qp.FaultBounds, fault)
	_, fault = (*pdMemory)(pd).Local(mr.LKey(), realAddr(buf), 1, false)
	require.Equal(t, qp.FaultBounds, fault, "the virtual address is not the region's")

	_, err = pd.RegMRAt(buf, math.MaxUint64-10, verbs.AccessLocalWrite)
	require.ErrorIs(t, err, verbs.ErrInvalid)
	_, err = pd.RegMRAt(buf, 0x1000, verbs.AccessZeroBased)
	require.ErrorIs(t, err, verbs.ErrInvalid)
}

func TestRegMRMisuse(t *testing.T) {
	host := newPDTestHost()
	host.attr.MaxMRSize = 4096
	pd := newPD(host)
	odd := aligned(17)[1:]
	for _, c := range []struct {
		buf    []byte
		access verbs.AccessFlags
		err    error
		says   string
	}{
		{nil, 0, verbs.ErrInvalid, "empty"},
		{[]byte{}, 0, verbs.ErrInvalid, "empty"},
		{make([]byte, 4097), 0, verbs.ErrLimit, "4096"},
		{make([]byte, 1), 1 << 10, verbs.ErrInvalid, "0x400"},
		{make([]byte, 1), verbs.AccessRemoteWrite, verbs.ErrInvalid, "AccessLocalWrite"},
		{make([]byte, 1), verbs.AccessRemoteAtomic | verbs.AccessRemoteRead, verbs.ErrInvalid, "AccessLocalWrite"},
		{odd, verbs.AccessLocalWrite | verbs.AccessRemoteAtomic | verbs.AccessZeroBased, verbs.ErrInvalid, "multiple of 8"},
	} {
		mr, err := pd.RegMR(c.buf, c.access)
		require.Nil(t, mr)
		require.ErrorIs(t, err, c.err)
		require.ErrorContains(t, err, c.says)
		var op *verbs.OpError
		require.ErrorAs(t, err, &op)
		require.Equal(t, "register MR", op.Op)
	}
	require.NoError(t, pd.Close(), "a failed registration leaves nothing behind")

	pd = newPD(host)
	mustReg(t, pd, odd, verbs.AccessLocalWrite|verbs.AccessRemoteAtomic)
	mustReg(t, pd, odd, verbs.AccessLocalWrite|verbs.AccessZeroBased)
	mustReg(t, pd, make([]byte, 4096), verbs.AccessRemoteRead)
}

func TestZeroBased(t *testing.T) {
	pd := newPD(newPDTestHost())
	buf := make([]byte, 64)
	mr := mustReg(t, pd, buf, allAccess|verbs.AccessZeroBased)
	require.Zero(t, mr.Addr())
	mem, fault := (*pdMemory)(pd).Remote(mr.RKey(), 10, 54, verbs.AccessRemoteWrite, 1)
	require.Equal(t, qp.NoFault, fault)
	require.Same(t, &buf[10], &mem[0])
	_, fault = (*pdMemory)(pd).Remote(mr.RKey(), 11, 54, verbs.AccessRemoteWrite, 1)
	require.Equal(t, qp.FaultBounds, fault)
	_, fault = (*pdMemory)(pd).Remote(mr.RKey(), uint64(uintptr(unsafe.Pointer(&buf[0]))), 1, verbs.AccessRemoteWrite, 1)
	require.Equal(t, qp.FaultBounds, fault)
}

func TestSGE(t *testing.T) {
	pd := newPD(newPDTestHost())
	for _, zero := range []verbs.AccessFlags{0, verbs.AccessZeroBased} {
		mr := mustReg(t, pd, make([]byte, 64), verbs.AccessLocalWrite|zero)
		use := func(off, n int) qp.Fault {
			s := mr.SGE(off, n)
			_, fault := (*pdMemory)(pd).Local(s.LKey, s.Addr, s.Length, true)
			return fault
		}
		require.Equal(t, verbs.SGE{Addr: mr.Addr() + 4, Length: 60, LKey: mr.LKey()}, mr.SGE(4, 60))
		require.Equal(t, qp.NoFault, use(0, 64))
		require.Equal(t, qp.NoFault, use(64, 0))
		for _, bad := range [][2]int{{-1, 1}, {0, 65}, {64, 1}, {0, -1}, {0, math.MinInt}, {math.MinInt, 1}, {math.MaxInt, 1}} {
			require.Equal(t, qp.FaultBounds, use(bad[0], bad[1]), "%d", bad)
		}
		if big := uint64(1) << 32; uint64(int(big)) == big { // where int has 64 bits
			require.Equal(t, qp.FaultBounds, use(0, int(big)), "a length does not wrap around")
		}
	}
}

func TestLoads(t *testing.T) {
	pd := newPD(newPDTestHost())
	buf := aligned(24)
	mr := mustReg(t, pd, buf, 0)
	binary.NativeEndian.PutUint64(buf[8:], 0x0102030405060708)
	binary.NativeEndian.PutUint32(buf[20:], 0x0a0b0c0d)
	require.Equal(t, uint64(0x0102030405060708), mr.LoadUint64(8))
	require.Equal(t, uint32(0x0a0b0c0d), mr.LoadUint32(20))

	says := func(text string, load func()) {
		t.Helper()
		defer func() { require.Contains(t, recover(), text) }()
		load()
	}
	for _, off := range []int{-8, 24, 17, math.MaxInt &^ 7, math.MinInt} {
		says(fmt.Sprintf("load of 8 bytes at offset %d of a region of 24 bytes", off), func() { mr.LoadUint64(off) })
	}
	says("load of 4 bytes at offset 21 of a region of 24 bytes", func() { mr.LoadUint32(21) })
	says("must be multiples of 8", func() { mr.LoadUint64(4) })
	says("must be multiples of 4", func() { mr.LoadUint32(2) })
	shifted := mustReg(t, pd, buf[4:], 0)
	says("must be multiples of 8", func() { shifted.LoadUint64(8) })
	says("must be multiples of 8", func() { shifted.LoadUint64(4) })
	require.Equal(t, uint32(0x0a0b0c0d), shifted.LoadUint32(16))

	small := mustReg(t, pd, buf[:3], 0)
	says("region of 3 bytes", func() { small.LoadUint32(0) })
}

func TestDereg(t *testing.T) {
	host := newPDTestHost()
	pd := newPD(host)
	mr := mustReg(t, pd, make([]byte, 64), allAccess)
	require.NoError(t, mr.Close())
	require.EqualValues(t, 1, host.quiesced.Load())
	_, fault := (*pdMemory)(pd).Local(mr.LKey(), mr.Addr(), 1, false)
	require.Equal(t, qp.FaultKey, fault)
	_, fault = (*pdMemory)(pd).Remote(mr.RKey(), mr.Addr(), 1, verbs.AccessRemoteRead, 1)
	require.Equal(t, qp.FaultKey, fault)

	require.NoError(t, mr.Close())
	require.NoError(t, pd.Close(), "the second Close counted nothing")
	_, err := pd.CreateAH(verbs.AHAttr{})
	require.ErrorIs(t, err, verbs.ErrClosed)
}

func TestDeregOnceOfMany(t *testing.T) {
	pd := newPD(newPDTestHost())
	mr := mustReg(t, pd, make([]byte, 64), allAccess)
	other := mustReg(t, pd, make([]byte, 64), allAccess)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { assert.NoError(t, mr.Close()) })
	}
	wg.Wait()
	require.ErrorIs(t, pd.Close(), verbs.ErrBusy, "it was counted once")
	require.NoError(t, other.Close())
	require.NoError(t, pd.Close())
}

// TestMRKeepsItsBufferAlive checks that registered memory stays alive exactly as long as its key is
// valid.
func TestMRKeepsItsBufferAlive(t *testing.T) {
	host := newPDTestHost()
	pd := newPD(host)
	collected := make(chan struct{})
	key, addr := func() (uint32, uint64) {
		buf := make([]byte, 1<<16)
		buf[100] = 42
		runtime.AddCleanup(&buf[0], func(struct{}) { close(collected) }, struct{}{})
		mr := mustReg(t, pd, buf, allAccess)
		return mr.LKey(), mr.Addr()
	}()
	runtime.GC()
	runtime.GC()
	mem, fault := (*pdMemory)(pd).Local(key, addr+100, 1, false)
	require.Equal(t, qp.NoFault, fault)
	require.EqualValues(t, 42, mem[0])
	select {
	case <-collected:
		t.Fatal("registered memory was collected")
	default:
	}

	mem = nil
	host.keys.remove(host.keys.lookup(key))
	runtime.GC()
	<-collected
}

// TestDeregBesideTheEngine checks that the memory belongs to the caller when Close returns, even if
// the engine is placing data concurrently. The race detector checks that.
func TestDeregBesideTheEngine(t *testing.T) {
	host := newPDTestHost()
	pd := newPD(host)
	var target atomic.Pointer[memoryRegion]
	var hits atomic.Int64
	done := make(chan struct{})
	var engine sync.WaitGroup
	engine.Go(func() {
		data := make([]byte, 64)
		for {
			select {
			case <-done:
				return
			default:
			}
			mr := target.Load()
			if mr == nil {
				runtime.Gosched()
				continue
			}
			host.shard.Lock()
			if mem, fault := (*pdMemory)(pd).Remote(mr.key, mr.base, 64, verbs.AccessRemoteWrite, 1); fault == qp.NoFault {
				copy(mem, data)
				hits.Add(1)
			}
			host.shard.Unlock()
		}
	})
	for range 300 {
		mr := mustReg(t, pd, make([]byte, 64), allAccess)
		before := hits.Load()
		target.Store(mr)
		for hits.Load() == before {
			runtime.Gosched()
		}
		require.NoError(t, mr.Close())
		for i := range mr.Bytes() {
			mr.Bytes()[i] = 0xff
		}
	}
	close(done)
	engine.Wait()
}

// TestNeighboursOfARegionAreNotWritten checks that the program may store plainly to memory next to a
// region, in the same word even, while the adapter writes to the region. The race detector checks
// that; without it, the test checks that no store is lost.
func TestNeighboursOfARegionAreNotWritten(t *testing.T) {
	a, b := pair(t, Options{})
	buf := aligned(16)
	mr, err := b.pd.RegMR(buf[2:7], verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
	require.NoError(t, err)
	stop := make(chan struct{})
	var owner sync.WaitGroup
	owner.Go(func() {
		for r := byte(0); ; r++ {
			select {
			case <-stop:
				return
			default:
			}
			for _, i := range []int{0, 1, 7, 8} {
				buf[i] = r
			}
			runtime.Gosched()
			for _, i := range []int{0, 1, 7, 8} {
				if buf[i] != r {
					t.Errorf("byte %d beside the region changed", i)
					return
				}
			}
		}
	})
	for range 50 {
		_, err := b.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{mr.SGE(0, 5)}}})
		require.NoError(t, err)
		a.post(t, verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendInline, InlineData: []byte("12345")})
		b.poll1(t)
		a.poll1(t)
		a.post(t, verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendInline, InlineData: []byte("678"),
			RemoteAddr: mr.Addr() + 1, RKey: mr.RKey()})
		a.poll1(t)
	}
	close(stop)
	owner.Wait()
	require.Equal(t, "16785", string(mr.Bytes()))
}
