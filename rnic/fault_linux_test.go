package rnic

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/internal/pages"
	"github.com/softrnic/softrnic/internal/racesync"
	"github.com/softrnic/softrnic/verbs"
)

// losable is memory of a region that becomes inaccessible.
type losable struct {
	mem  []byte
	lose func() // all except the first page
}

const losableBytes = 256 << 10

// losses are the ways in which memory becomes inaccessible.
var losses = map[string]func(t testing.TB) losable{
	"truncated file": func(t testing.TB) losable {
		f := sparseFile(t, losableBytes)
		mem, err := unix.Mmap(int(f.Fd()), 0, losableBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		require.NoError(t, err)
		t.Cleanup(func() { unix.Munmap(mem) })
		return losable{mem, func() { require.NoError(t, f.Truncate(4096)) }}
	},
	"unmapped": func(t testing.TB) losable {
		// Far from other mappings, so that the range is not reused.
		far := uint64(0x1_2345_0000_0000)
		p, err := unix.MmapPtr(-1, 0, unsafe.Add(unsafe.Pointer(nil), uintptr(far)), losableBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		require.NoError(t, err)
		t.Cleanup(func() { unix.MunmapPtr(p, 4096) })
		return losable{unsafe.Slice((*byte)(p), losableBytes), func() {
			require.NoError(t, unix.MunmapPtr(unsafe.Add(p, 4096), losableBytes-4096))
		}}
	},
	"protected": func(t testing.TB) losable { return protectable(t, unix.PROT_NONE) },
}

// protectable is memory with variable protection.
func protectable(t testing.TB, prot int) losable {
	mem, err := unix.Mmap(-1, 0, losableBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Munmap(mem) })
	return losable{mem, func() { require.NoError(t, unix.Mprotect(mem[4096:], prot)) }}
}

func sparseFile(t testing.TB, n int64) *os.File {
	f, err := os.Create(filepath.Join(t.TempDir(), "memory"))
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	require.NoError(t, f.Truncate(n))
	return f
}

// faultCase is a request whose memory, at either end, becomes inaccessible between registration and
// use.
type faultCase struct {
	name string
	typ  verbs.QPType
	rdma bool // RDMA between UD queue pairs
	peer bool // the peer's memory is lost
	wr   verbs.SendWR
	off  int // of the lost region
	n    int
	more int             // in a second element, whose memory stays valid
	want verbs.WCStatus  // of the request
	recv verbs.WCStatus  // of the peer's receive; success: none
	end  verbs.QPState   // of the queue pair with the lost memory
	ev   verbs.EventType // at the peer, without a receive
}

func faultCases() (list []faultCase) {
	local := func(name string, op verbs.WROpcode, off, n, more int) {
		list = append(list, faultCase{name: "local " + name, typ: verbs.RC, wr: verbs.SendWR{Opcode: op}, off: off, n: n, more: more,
			want: verbs.WCLocProtErr, end: verbs.StateErr})
	}
	local("short send", verbs.WRSend, 8192, 100, 0)
	local("send", verbs.WRSend, 0, 100_000, 0)
	local("send of a list", verbs.WRSend, 0, 9000, 100)
	local("send with immediate", verbs.WRSendWithImm, 8192, 3000, 0)
	local("short write", verbs.WRRDMAWrite, 8192, 8, 0)
	local("write", verbs.WRRDMAWrite, 0, 200_000, 0)
	local("write with immediate", verbs.WRRDMAWriteWithImm, 0, 200_000, 0)
	local("read", verbs.WRRDMARead, 0, 100_000, 0)
	local("compare and swap", verbs.WRAtomicCmpSwap, 8192, 8, 0)
	local("fetch and add", verbs.WRAtomicFetchAdd, 8192, 8, 0)
	peer := func(name string, op verbs.WROpcode, off, n int, recv verbs.WCStatus) {
		list = append(list, faultCase{name: "peer's " + name, typ: verbs.RC, peer: true, wr: verbs.SendWR{Opcode: op}, off: off, n: n,
			want: verbs.WCRemOpErr, recv: recv, end: verbs.StateErr, ev: verbs.EventQPAccessErr})
	}
	peer("receive", verbs.WRSend, 0, 9000, verbs.WCLocProtErr)
	peer("short write", verbs.WRRDMAWrite, 8192, 8, 0)
	peer("write", verbs.WRRDMAWrite, 0, 200_000, 0)
	peer("read", verbs.WRRDMARead, 0, 200_000, 0)
	peer("short read", verbs.WRRDMARead, 8192, 8, 0)
	peer("compare and swap", verbs.WRAtomicCmpSwap, 8192, 8, 0)
	peer("fetch and add", verbs.WRAtomicFetchAdd, 8192, 8, 0)
	list = append(list,
		faultCase{name: "local UC send", typ: verbs.UC, wr: verbs.SendWR{Opcode: verbs.WRSend}, n: 9000, want: verbs.WCLocProtErr, end: verbs.StateSQE},
		faultCase{name: "local UC write", typ: verbs.UC, wr: verbs.SendWR{Opcode: verbs.WRRDMAWrite}, off: 8192, n: 9000, want: verbs.WCLocProtErr, end: verbs.StateSQE},
		faultCase{name: "peer's UC receive", typ: verbs.UC, peer: true, wr: verbs.SendWR{Opcode: verbs.WRSend}, n: 9000, recv: verbs.WCLocProtErr, end: verbs.StateErr},
		faultCase{name: "peer's UC write", typ: verbs.UC, peer: true, wr: verbs.SendWR{Opcode: verbs.WRRDMAWrite}, n: 9000, end: verbs.StateErr, ev: verbs.EventQPAccessErr},
		faultCase{name: "local UD send", typ: verbs.UD, wr: verbs.SendWR{Opcode: verbs.WRSend}, off: 8192, n: 1000, want: verbs.WCLocProtErr, end: verbs.StateSQE},
		faultCase{name: "peer's UD receive", typ: verbs.UD, peer: true, wr: verbs.SendWR{Opcode: verbs.WRSend}, off: 8192, n: 1000, recv: verbs.WCLocProtErr, end: verbs.StateErr},
	)
	for _, op := range []verbs.WROpcode{verbs.WRRDMAWrite, verbs.WRRDMARead, verbs.WRAtomicCmpSwap, verbs.WRAtomicFetchAdd} {
		n, off := 100_000, 0
		if op == verbs.WRAtomicCmpSwap || op == verbs.WRAtomicFetchAdd {
			n, off = 8, 8192
		}
		list = append(list,
			faultCase{name: "local datagram " + op.String(), typ: verbs.UD, rdma: true, wr: verbs.SendWR{Opcode: op}, off: off, n: n, want: verbs.WCLocProtErr, end: verbs.StateRTS},
			faultCase{name: "peer's datagram " + op.String(), typ: verbs.UD, rdma: true, peer: true, wr: verbs.SendWR{Opcode: op}, off: off, n: n, want: verbs.WCRemOpErr, end: verbs.StateRTS},
		)
	}
	return list
}

// TestMemoryFaults checks that inaccessible memory of a region fails the requests that access it,
// with the status of the specification, and affects neither the process nor other queue pairs of
// the device.
func TestMemoryFaults(t *testing.T) {
	for how, make := range losses {
		a, b := newEnd(t, Options{}), newEnd(t, Options{})
		connect(t, a.dev, a.qp, b.dev, b.qp) // the others
		for _, c := range faultCases() {
			t.Run(how+"/"+c.name, func(t *testing.T) { c.run(t, a, b, make(t)) })
			_, err := a.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGList: []verbs.SGE{a.mr.SGE(0, 100_000)},
				RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()}})
			require.NoError(t, err)
			a.poll1(t)
		}
	}
}

// TestWriteProtectedMemory checks that stores to memory that has become read-only fail.
func TestWriteProtectedMemory(t *testing.T) {
	if racesync.Enabled {
		t.Skip("the race detector stores atomically in C, where a fault ends the process")
	}
	a, b := newEnd(t, Options{}), newEnd(t, Options{})
	for _, c := range faultCases() {
		fetches := c.wr.Opcode == verbs.WRRDMARead || c.wr.Opcode == verbs.WRAtomicCmpSwap || c.wr.Opcode == verbs.WRAtomicFetchAdd
		if c.peer && c.wr.Opcode != verbs.WRRDMARead || !c.peer && fetches {
			t.Run(c.name, func(t *testing.T) { c.run(t, a, b, protectable(t, unix.PROT_READ)) })
		}
	}
}

// run posts the request on queue pairs of its own.
func (c *faultCase) run(t *testing.T, a, b *end, m losable) {
	qa := &end{dev: a.dev, pd: a.pd, cq: a.newCQ(t, 16)}
	qb := &end{dev: b.dev, pd: b.pd, cq: b.newCQ(t, 16)}
	toB := c.connect(t, qa, qb)
	mine, theirs := a.mr, b.mr
	lost := &theirs
	if !c.peer {
		lost = &mine
	}
	of := qb.pd
	if !c.peer {
		of = qa.pd
	}
	var err error
	*lost, err = of.RegMR(m.mem, allAccess)
	require.NoError(t, err)
	defer func(mr verbs.MR) { require.NoError(t, mr.Close()) }(*lost)
	off, remote := 0, 0
	if c.peer {
		remote = c.off
	} else {
		off = c.off
	}
	m.lose()

	if c.recv != verbs.WCSuccess || c.wr.Opcode == verbs.WRSend || c.wr.Opcode == verbs.WRSendWithImm || c.wr.Opcode == verbs.WRRDMAWriteWithImm {
		_, err := qb.qp.PostRecv([]verbs.RecvWR{{WRID: 7, SGList: []verbs.SGE{theirs.SGE(remote, c.n+c.more+100)}}})
		require.NoError(t, err)
	}
	wr := c.wr
	wr.Flags = verbs.SendSignaled
	wr.SGList = []verbs.SGE{mine.SGE(off, c.n)}
	if c.more > 0 {
		wr.SGList = append(wr.SGList, a.mr.SGE(0, c.more))
	}
	wr.RemoteAddr, wr.RKey = theirs.Addr()+uint64(remote), theirs.RKey()
	wr.AH, wr.RemoteQPN, wr.RemoteQKey = toB, qb.qp.Num(), qkey
	n, err := qa.qp.PostSend([]verbs.SendWR{wr})
	require.NoError(t, err)
	require.Equal(t, 1, n)

	at := qa
	if c.peer {
		at = qb
	}
	if c.recv != verbs.WCSuccess {
		wc := qb.next(t)
		require.Equal(t, c.recv, wc.Status, wc.Err())
		require.Contains(t, wc.Err().Error(), "the process cannot access")
	} else if c.ev != 0 {
		ev := b.event(t, c.ev)
		require.Equal(t, qb.qp, ev.QP)
		require.Contains(t, ev.Failure.String(), "the process cannot access")
	}
	wc := qa.next(t)
	require.Equal(t, c.want, wc.Status, wc.Err())
	if c.want == verbs.WCLocProtErr {
		require.Contains(t, wc.Err().Error(), "the process cannot access")
	}
	require.Equal(t, c.end, at.qp.State())
}

// connect connects the queue pairs of the case and returns the handle for requests of UD.
func (c *faultCase) connect(t *testing.T, qa, qb *end) verbs.AH {
	most := 0
	if c.rdma {
		most = 4
	}
	for _, e := range []*end{qa, qb} {
		e.qp = e.newQPWith(t, verbs.QPInitAttr{Type: c.typ, MaxDatagramRDMA: most})
	}
	if c.typ != verbs.UD {
		connectWith(t, qa.dev, qa.qp, qb.dev, qb.qp, verbs.ConnectOptions{})
		return nil
	}
	require.NoError(t, verbs.ActivateUD(qa.qp, qkey, 100))
	require.NoError(t, verbs.ActivateUD(qb.qp, qkey, 200))
	if !c.rdma {
		return qa.handle(t, qb.dev)
	}
	return connectPeers(t, qa, qb)
}

// TestFaultOfInlineData checks that unreadable inline data fails the post, and leaves the queue
// unchanged.
func TestFaultOfInlineData(t *testing.T) {
	for how, make := range losses {
		t.Run(how, func(t *testing.T) {
			a, b := pair(t, Options{})
			m := make(t)
			m.lose()
			_, err := a.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendInline, InlineData: m.mem[8192:8200]}})
			require.ErrorIs(t, err, verbs.ErrFault)
			b.recv(t, 1, 0, 100)
			a.post(t, verbs.SendWR{WRID: 5, Opcode: verbs.WRSend, Flags: verbs.SendInline, InlineData: []byte("readable")})
			require.EqualValues(t, 5, a.poll1(t).WRID)
			require.EqualValues(t, 8, b.poll1(t).ByteLen)
		})
	}
}

// TestFaultAmidRequests checks that earlier requests complete first, and later ones are flushed.
func TestFaultAmidRequests(t *testing.T) {
	for _, typ := range []verbs.QPType{verbs.RC, verbs.UC, verbs.UD} {
		for _, n := range []int{100, 3000} {
			t.Run(fmt.Sprint(typ, n), func(t *testing.T) {
				a, b := pairOf(t, Options{}, typ)
				m := losses["truncated file"](t)
				lost, err := a.pd.RegMR(m.mem, verbs.AccessLocalWrite)
				require.NoError(t, err)
				m.lose()
				var wrs []verbs.SendWR
				for i, mr := range []verbs.MR{a.mr, a.mr, lost, a.mr} {
					b.recv(t, uint64(i), 0, 4096)
					wrs = append(wrs, verbs.SendWR{WRID: uint64(i), Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{mr.SGE(8192, n)}})
					if typ == verbs.UD {
						wrs[i].AH, wrs[i].RemoteQPN, wrs[i].RemoteQKey = a.handle(t, b.dev), b.qp.Num(), qkey
					}
				}
				_, err = a.qp.PostSend(wrs)
				require.NoError(t, err)
				for i, want := range []verbs.WCStatus{verbs.WCSuccess, verbs.WCSuccess, verbs.WCLocProtErr, verbs.WCWRFlushErr} {
					wc := a.next(t)
					require.EqualValues(t, i, wc.WRID)
					require.Equal(t, want, wc.Status, wc.Err())
				}
			})
		}
	}
}

// TestFaultOfLentPayload checks that packets whose payload becomes inaccessible before they are
// sent are lost, and that the request fails when it is retransmitted.
func TestFaultOfLentPayload(t *testing.T) {
	for how, make := range losses {
		t.Run(how, func(t *testing.T) {
			a, b := pair(t, Options{NoService: true})
			m := make(t)
			lent, err := a.pd.RegMR(m.mem, verbs.AccessLocalWrite)
			require.NoError(t, err)
			q := a.qp.(*queuePair)
			s := q.shard
			s.mu.Lock()
			_, err = q.core.PostSend(q.dev.now(), []verbs.SendWR{{
				Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGList: []verbs.SGE{lent.SGE(0, 20_000)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey(),
			}})
			s.drainQP(q, q.dev.now())
			refers := s.tx.HasZeroCopy()
			m.lose()
			s.flush()
			s.mu.Unlock()
			require.NoError(t, err)
			require.True(t, refers)
			for a.cq.Len() == 0 {
				a.dev.Progress()
				b.dev.Progress()
			}
			require.Equal(t, verbs.WCLocProtErr, a.next(t).Status)
		})
	}
}

// TestRegisterOnlyWhatMayBeAccessed checks that RegMR refuses memory that does not permit the
// requested access.
func TestRegisterOnlyWhatMayBeAccessed(t *testing.T) {
	e := newEnd(t, Options{})
	page := os.Getpagesize()
	anon := func(prot int) func(t *testing.T) []byte {
		return func(t *testing.T) []byte {
			mem, err := unix.Mmap(-1, 0, 4*page, prot, unix.MAP_ANON|unix.MAP_PRIVATE)
			require.NoError(t, err)
			t.Cleanup(func() { unix.Munmap(mem) })
			return mem
		}
	}
	readWrite := anon(unix.PROT_READ | unix.PROT_WRITE)
	write := verbs.AccessLocalWrite
	for _, c := range []struct {
		name   string
		mem    func(t *testing.T) []byte
		access verbs.AccessFlags
		want   error
	}{
		{"heap", func(*testing.T) []byte { return make([]byte, 100) }, allAccess, nil},
		{"constant", func(*testing.T) []byte { return unsafe.Slice(unsafe.StringData("constants cannot be written"), 20) }, write, pages.ErrNotWritable},
		{"constant source", func(*testing.T) []byte { return unsafe.Slice(unsafe.StringData("constants can be read"), 20) }, verbs.AccessRemoteRead, nil},
		{"writable", readWrite, allAccess, nil},
		{"read-only", anon(unix.PROT_READ), write, pages.ErrNotWritable},
		{"read-only to a peer's writes", anon(unix.PROT_READ), write | verbs.AccessRemoteWrite, pages.ErrNotWritable},
		{"read-only to atomics", anon(unix.PROT_READ), write | verbs.AccessRemoteAtomic, pages.ErrNotWritable},
		{"read-only source", anon(unix.PROT_READ), verbs.AccessRemoteRead, nil},
		{"read-only without rights", anon(unix.PROT_READ), 0, nil},
		{"no access", anon(unix.PROT_NONE), verbs.AccessRemoteRead, pages.ErrNotReadable},
		{"the last page read-only", func(t *testing.T) []byte {
			mem := readWrite(t)
			require.NoError(t, unix.Mprotect(mem[3*page:], unix.PROT_READ))
			return mem[:3*page+1]
		}, write, pages.ErrNotWritable},
		{"up to a read-only page", func(t *testing.T) []byte {
			mem := readWrite(t)
			require.NoError(t, unix.Mprotect(mem[3*page:], unix.PROT_READ))
			return mem[:3*page]
		}, write, nil},
		{"a hole", func(t *testing.T) []byte {
			m := losses["unmapped"](t)
			m.lose()
			return m.mem
		}, verbs.AccessRemoteRead, pages.ErrUnmapped},
		{"a file", func(t *testing.T) []byte { return losses["truncated file"](t).mem }, allAccess, nil},
		{"beyond a file", func(t *testing.T) []byte {
			m := losses["truncated file"](t)
			m.lose()
			return m.mem
		}, verbs.AccessRemoteRead, pages.ErrBeyondFile},
		{"large and never touched", func(t *testing.T) []byte {
			mem, err := unix.Mmap(-1, 0, 1<<(strconv.IntSize/2+8), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
			if err != nil {
				t.Skip("no address space: ", err)
			}
			t.Cleanup(func() { unix.Munmap(mem) })
			return mem
		}, allAccess, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			mr, err := e.pd.RegMR(c.mem(t), c.access)
			if c.want == nil {
				require.NoError(t, err)
				require.NoError(t, mr.Close())
				return
			}
			require.ErrorIs(t, err, verbs.ErrFault)
			require.ErrorIs(t, err, syscall.EFAULT)
			require.ErrorContains(t, err, c.want.Error())
		})
	}
}

func BenchmarkRegMR(b *testing.B) {
	e := newEnd(b, Options{})
	mem := make([]byte, 1<<20)
	for b.Loop() {
		mr, err := e.pd.RegMR(mem, allAccess)
		if err != nil {
			b.Fatal(err)
		}
		mr.Close()
	}
}
