//go:build linux

package uverbs

import (
	"context"
	"encoding/hex"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// objects creates one object of each kind.
func objects(t *testing.T, d *device, typ verbs.QPType) (verbs.PD, verbs.CQ, verbs.QP) {
	t.Helper()
	pd, err := d.AllocPD()
	require.NoError(t, err)
	cq, err := d.CreateCQ(16)
	require.NoError(t, err)
	qp, err := pd.CreateQP(verbs.QPInitAttr{Type: typ, SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxSendWR: 3, MaxRecvWR: 3, MaxSendSGE: 4, MaxRecvSGE: 4}})
	require.NoError(t, err)
	return pd, cq, qp
}

// TestCommandBytes compares commands with bytes that are written by hand from the kernel's headers.
func TestCommandBytes(t *testing.T) {
	k := newFakeKernel(t)
	d := k.open()
	pd, cq, qp := objects(t, d, verbs.RC)

	require.NoError(t, cq.ReqNotify(true))
	require.Equal(t, "17000000"+"0400"+"0000"+"07000000"+"01000000", hex.EncodeToString(k.last()))

	page := make([]byte, 8192)
	offset := 4096 - int(addressOf(page)%4096)
	_, err := pd.RegMRAt(page[offset:offset+100], 0x7000, verbs.AccessLocalWrite|verbs.AccessRemoteRead)
	require.NoError(t, err)
	b := k.last()
	require.Equal(t, "09000000"+"0c00"+"0300", hex.EncodeToString(b[:8])) // 48 and 12 bytes
	require.Equal(t, addressOf(page[offset:]), *(*uint64)(unsafe.Pointer(&b[16])))
	require.Equal(t, "6400000000000000"+"0070000000000000"+"00000000"+"05000000", hex.EncodeToString(b[24:]))

	a := verbs.QPAttr{State: verbs.StateInit, PortNum: 1, AccessFlags: verbs.AccessRemoteRead}
	require.NoError(t, qp.Modify(a, verbs.AttrState|verbs.AttrPKeyIndex|verbs.AttrPort|verbs.AttrAccessFlags))
	a = verbs.QPAttr{State: verbs.StateRTR, PathMTU: verbs.MTU1024, DestQPN: 0x22, RQPSN: 0x33, MaxDestRdAtomic: 4, MinRNRTimer: 12,
		AV: verbs.AHAttr{DGID: verbs.GIDFromAddr(netip.MustParseAddr("192.0.2.9")), TrafficClass: 8}}
	require.NoError(t, qp.Modify(a, verbs.AttrState|verbs.AttrAV|verbs.AttrPathMTU|verbs.AttrDestQPN|verbs.AttrRQPSN|verbs.AttrMaxDestRdAtomic|verbs.AttrMinRNRTimer))
	require.Equal(t, "1a000000"+"1e00"+"0000"+ // 120 bytes
		"00000000000000000000ffffc0000209"+"00000000"+"0000"+"0000"+"01"+"40"+"08"+"00"+"00"+"00"+"01"+"01"+ // SGID index 1: the kernel's entry 1 is entry 0 here
		"0000000000000000000000000000000000000000000000000000000000000000"+
		"09000000"+hex.EncodeToString(bytesOf(new(uint32(verbs.AttrState|verbs.AttrAV|verbs.AttrPathMTU|verbs.AttrDestQPN|verbs.AttrRQPSN|verbs.AttrMaxDestRdAtomic|verbs.AttrMinRNRTimer))))+
		"00000000"+"33000000"+"00000000"+"22000000"+"00000000"+"0000"+"0000"+"02"+"00"+"03"+"00"+"00"+"00"+"04"+"0c"+"00"+"00"+"00"+"00"+"00"+"00"+"0000",
		hex.EncodeToString(k.last()))
}

// TestElements compares the elements of requests and receives with bytes written by hand.
func TestElements(t *testing.T) {
	k := newFakeKernel(t)
	d := k.open()
	_, _, qp := objects(t, d, verbs.RC)
	q := qp.(*queuePair)
	activate(t, qp)
	before := len(k.commands)
	n, err := qp.PostSend([]verbs.SendWR{
		{WRID: 1, Opcode: verbs.WRRDMAWriteWithImm, Flags: verbs.SendSolicited | verbs.SendDelayAck, Imm: 0x01020304, RemoteAddr: 0x1000, RKey: 0x55,
			SGList: []verbs.SGE{{Addr: 0x2000, Length: 7, LKey: 9}, {Addr: 0x3000, Length: 1, LKey: 9}}},
		{WRID: 2, Opcode: verbs.WRAtomicCmpSwap, CompareAdd: 3, Swap: 4, RemoteAddr: 0x1008, RKey: 0x55, SGList: []verbs.SGE{{Addr: 0x2000, Length: 8, LKey: 9}}},
		{WRID: 3, Opcode: verbs.WRSend, Flags: verbs.SendInline, InlineData: []byte("abc")},
		{WRID: 4, Opcode: verbs.WRSend},
	})
	require.ErrorIs(t, err, verbs.ErrQueueFull)
	require.Equal(t, 3, n)
	require.Equal(t, before+1, len(k.commands), "one system call for the list")
	require.Equal(t, "1c000000"+"0800"+"0100", hex.EncodeToString(k.last()[:8]))
	require.Equal(t, "09000000"+"00000000"+"00000000"+"38000000", hex.EncodeToString(k.last()[16:]))

	words := func(i uint32, from, n int) string {
		return hex.EncodeToString(unsafe.Slice((*byte)(unsafe.Add(q.ring.elementAt(i), from)), n))
	}
	require.Equal(t, "0100000000000000"+"00000000"+"01000000"+"04000000"+"01020304"+"0010000000000000"+"55000000", words(0, 0, 36))
	require.Equal(t, "0010000000000000", words(0, 152, 8))
	require.Equal(t, "08000000"+"08000000"+"00000000"+"02000000"+"00000000"+"00000000"+
		"0020000000000000"+"07000000"+"09000000"+"0030000000000000"+"01000000"+"09000000", words(0, 184, 56))
	require.Equal(t, "0810000000000000"+"0300000000000000"+"0400000000000000"+"55000000", words(1, 24, 28))
	require.Equal(t, "03000000"+"03000000"+"00000000"+"01000000"+"00000000"+"00000000"+hex.EncodeToString([]byte("abc")), words(2, 184, 27))

	n, err = qp.PostRecv([]verbs.RecvWR{{WRID: 5, SGList: []verbs.SGE{{Addr: 0x4000, Length: 16, LKey: 9}}}})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, before+1, len(k.commands), "no system call")
	require.Equal(t, "0500000000000000"+"0000000000000000"+"10000000"+"10000000"+"00000000"+"01000000"+"00000000"+"00000000"+
		"0040000000000000"+"10000000"+"09000000", hex.EncodeToString(unsafe.Slice((*byte)(q.receives.ring.elementAt(0)), 56)))
}

// activate brings a queue pair to RTS.
func activate(t *testing.T, qp verbs.QP) {
	t.Helper()
	local := verbs.Endpoint{GID: verbs.GIDFromAddr(netip.MustParseAddr("192.0.2.2")), QPN: qp.Num(), MTU: verbs.MTU1024}
	remote := local
	remote.QPN = 0x99
	require.NoError(t, verbs.Connect(qp, local, remote, verbs.ConnectOptions{}))
}

// TestPoll checks the conversion of completions, and that those of a reset queue pair are dropped.
func TestPoll(t *testing.T) {
	k := newFakeKernel(t)
	d := k.open()
	_, cq, qp := objects(t, d, verbs.RC)
	before := len(k.commands)
	k.complete(cq, completionElement{id: 1, opcode: 1, bytes: 5, qpn: 0x11, flags: 2})
	k.complete(cq, completionElement{id: 2, status: 12, opcode: 1, bytes: 5, vendorErr: 3, qpn: 0x11})
	k.complete(cq, completionElement{id: 3, opcode: 128, bytes: 6, qpn: 0x11, flags: 3, immOrKey: [4]byte{1, 2, 3, 4}})
	k.complete(cq, completionElement{id: 4, opcode: 128, qpn: 0x12, source: 0x17, flags: 5, immOrKey: [4]byte{1, 2, 3, 4}})
	require.Equal(t, 4, cq.Len())
	var wc [8]verbs.WC
	n, err := cq.Poll(wc[:3])
	require.NoError(t, err)
	require.Equal(t, []verbs.WC{
		{WRID: 1, Opcode: verbs.WCRDMAWrite, ByteLen: 5, QPN: 0x11},
		{WRID: 2, Status: verbs.WCRetryExcErr, VendorErr: 3, QPN: 0x11},
		{WRID: 3, Opcode: verbs.WCRecv, ByteLen: 6, QPN: 0x11, Flags: verbs.WCWithImm, Imm: 0x01020304},
	}, wc[:n])
	require.True(t, qp.(*queuePair).failed.Load())
	for i := range uint64(6) {
		k.complete(cq, completionElement{id: 10 + i, qpn: 0x11 + uint32(i%2)})
	}
	require.NoError(t, qp.Close())
	n, err = cq.Poll(wc[:])
	require.NoError(t, err)
	require.Equal(t, 4, n)
	require.Equal(t, verbs.WC{WRID: 4, Opcode: verbs.WCRecv, QPN: 0x12, SrcQPN: 0x17, Flags: verbs.WCGRH | verbs.WCWithInv, InvKey: 0x04030201}, wc[0])
	for i := range uint64(3) {
		require.Equal(t, 11+2*i, wc[1+i].WRID)
	}
	require.Equal(t, before+1, len(k.commands), "DESTROY_QP; polls need none")
}

// TestEvents checks the events of queues, of channels and of the device.
func TestEvents(t *testing.T) {
	k := newFakeKernel(t)
	d := k.open()
	_, cq, qp := objects(t, d, verbs.RC)
	ctx := t.Context()
	notify := func(channel int, handle uint64) {
		_, err := k.channels[channel].Write(bytesOf(&completionEvent{handle}))
		require.NoError(t, err)
	}
	require.NoError(t, cq.ReqNotify(false))
	notify(0, k.handles[cmdCreateCQ][0])
	require.NoError(t, cq.Wait(ctx))

	ch, err := d.CreateCompChannel()
	require.NoError(t, err)
	other, err := ch.CreateCQ(4)
	require.NoError(t, err)
	require.ErrorIs(t, ch.Close(), verbs.ErrBusy)
	require.ErrorIs(t, other.Wait(ctx), verbs.ErrInvalid)
	notify(1, k.handles[cmdCreateCQ][1]) // not armed
	require.NoError(t, other.ReqNotify(false))
	notify(1, k.handles[cmdCreateCQ][1])
	got, err := ch.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, other, got)

	done := make(chan verbs.WC)
	go func() {
		var wc [1]verbs.WC
		_, _ = cq.PollWait(ctx, wc[:])
		done <- wc[0]
	}()
	k.complete(cq, completionElement{id: 77})
	notify(0, k.handles[cmdCreateCQ][0])
	require.EqualValues(t, 77, (<-done).WRID)

	for _, e := range []asyncEvent{
		{element: k.handles[cmdCreateQP][0], kind: uint32(verbs.EventQPFatal)}, {element: 1, kind: uint32(verbs.EventGIDChange)},
		{element: 99}, {element: k.handles[cmdCreateCQ][0], kind: uint32(verbs.EventCQErr)},
	} {
		_, err := k.async.Write(bytesOf(&e))
		require.NoError(t, err)
	}
	for _, want := range []verbs.AsyncEvent{{Type: verbs.EventQPFatal, QP: qp}, {Type: verbs.EventGIDChange, Port: 1}, {Type: verbs.EventCQErr, CQ: cq}} {
		e, err := d.AsyncEvent(ctx)
		require.NoError(t, err)
		require.Equal(t, want.Type, e.Type)
		require.Equal(t, want.Port, e.Port)
		require.True(t, want.QP == e.QP && want.CQ == e.CQ)
	}
	_, err = cq.Poll(make([]verbs.WC, 1))
	require.ErrorIs(t, err, verbs.ErrCQOverrun)

	ended, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, other.Wait(ended), verbs.ErrInvalid)
	_, err = d.AsyncEvent(ended)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, other.Close())
	require.NoError(t, ch.Close())
	require.NoError(t, d.Close())
	_, err = d.AsyncEvent(ctx)
	require.ErrorIs(t, err, verbs.ErrClosed)
	require.ErrorIs(t, cq.Wait(ctx), verbs.ErrClosed)
	_, err = qp.PostSend(nil)
	require.Error(t, err)
}

// TestKernelErrors checks that the errors of the kernel are those of package verbs, with advice.
func TestKernelErrors(t *testing.T) {
	k := newFakeKernel(t)
	d := k.open()
	pd, _, _ := objects(t, d, verbs.RC)
	register := func() error {
		_, err := pd.RegMR(make([]byte, 4096), 0)
		return err
	}
	for errno, want := range map[syscall.Errno]error{
		syscall.EINVAL: verbs.ErrInvalid, syscall.EFAULT: verbs.ErrFault, syscall.ENOMEM: verbs.ErrNoMemory, syscall.EOPNOTSUPP: verbs.ErrUnsupported,
		syscall.EIO: verbs.ErrClosed, syscall.EACCES: fs.ErrPermission, syscall.EBUSY: verbs.ErrBusy,
	} {
		k.errno[cmdRegMR] = errno
		err := register()
		require.ErrorIs(t, err, want)
		require.ErrorIs(t, err, errno)
	}
	var limit, old syscall.Rlimit
	const memlock = 8
	require.NoError(t, syscall.Getrlimit(memlock, &old))
	limit = old
	limit.Cur = min(64<<10, old.Max)
	require.NoError(t, syscall.Setrlimit(memlock, &limit))
	t.Cleanup(func() { require.NoError(t, syscall.Setrlimit(memlock, &old)) })
	k.errno[cmdRegMR] = syscall.ENOMEM
	require.ErrorContains(t, register(), `raise it with "ulimit -l" (RLIMIT_MEMLOCK)`)
	delete(k.errno, cmdRegMR)
	k.short = true
	require.ErrorIs(t, register(), io.ErrShortWrite)
	k.short = false
}

// TestOpenErrors checks the errors of Open.
func TestOpenErrors(t *testing.T) {
	s := system{class: t.TempDir(), nodes: t.TempDir()}
	_, err := s.openDevice(Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "rdma link add rxe0 type rxe netdev eth0")
	s = fakeSystem(t)
	names, nodes, err := s.listDevices()
	require.NoError(t, err)
	require.Equal(t, []string{"mlx5_0", "rxe0"}, names)
	require.Equal(t, map[string]string{"mlx5_0": "uverbs1", "rxe0": "uverbs0"}, nodes)
	_, err = s.openDevice(Options{Name: "rxe1"})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "no RDMA device rxe1, but mlx5_0, rxe0")
	_, err = s.openDevice(Options{})
	require.ErrorIs(t, err, fs.ErrNotExist, "no device node")
	writeFile(t, s, "infiniband_verbs/abi_version", "7")
	_, err = s.openDevice(Options{})
	require.ErrorIs(t, err, verbs.ErrUnsupported)
	require.ErrorContains(t, err, "ABI version 7 of ib_uverbs: want 6")

	k := newFakeKernel(t)
	k.vendor = 0x02c9
	_, err = k.openDevice()
	require.ErrorIs(t, err, verbs.ErrUnsupported)
	require.ErrorContains(t, err, "vendor 0x0002c9 has no provider here, only rxe has")
	k = newFakeKernel(t)
	d := newDevice("rxe0", k.file(), fakeSystem(t))
	require.ErrorContains(t, d.start(3, netip.Addr{}), "ABI version 3 of rxe: want 2")
	require.NoError(t, d.Close())
	d = newDevice("rxe0", newFakeKernel(t).file(), fakeSystem(t))
	require.ErrorContains(t, d.start(rxeABIVersion, netip.MustParseAddr("192.0.2.3")), "no entry of the GID table has the address 192.0.2.3")
	require.NoError(t, d.Close())
}

// TestGIDs checks that entry 0 of the GID table is the IPv4 address.
func TestGIDs(t *testing.T) {
	d := newFakeKernel(t).open()
	for i, want := range []string{"192.0.2.2", "fe80::1", "::"} {
		g, err := d.QueryGID(1, i)
		require.NoError(t, err)
		require.Equal(t, want, g.GID.Addr().String())
		require.Equal(t, i, g.Index)
	}
	_, err := d.QueryGID(1, 3)
	require.ErrorIs(t, err, verbs.ErrInvalid)
	_, err = d.QueryGID(2, 0)
	require.ErrorIs(t, err, verbs.ErrInvalid)
}

// TestBadRing checks that an invalid header of a queue is refused.
func TestBadRing(t *testing.T) {
	memory := make([]byte, ringElements+64)
	for _, size := range []int{0, ringElements - 1} {
		_, err := newRing(memory[:size])
		require.Error(t, err)
	}
	for _, header := range [][2]uint32{{7, 0}, {0, 2}, {0, 127}, {64, 0}, {1, 0xffffffff}} {
		*(*[2]uint32)(unsafe.Pointer(&memory[0])) = header
		_, err := newRing(memory)
		require.Error(t, err, header)
	}
	*(*[2]uint32)(unsafe.Pointer(&memory[0])) = [2]uint32{4, 3}
	r, err := newRing(memory)
	require.NoError(t, err)
	require.Equal(t, 3, r.capacity())
}

// TestConnectionManagerErrors opens the kernel's connection manager where it is missing, closed to the
// user, or of another version.
func TestConnectionManagerErrors(t *testing.T) {
	s := fakeSystem(t)
	_, err := s.openConnectionManager()
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "load the kernel's module rdma_ucm")

	writeFile(t, s, "misc/rdma_cm/abi_version", "3")
	_, err = s.openConnectionManager()
	require.ErrorIs(t, err, verbs.ErrUnsupported)
	require.ErrorContains(t, err, "ABI version 3 of rdma_ucm: want 4")

	writeFile(t, s, "misc/rdma_cm/abi_version", "4")
	_, err = s.openConnectionManager()
	require.ErrorIs(t, err, fs.ErrNotExist, "no node")

	if os.Getuid() == 0 {
		return // may open everything; TestUnprivileged has the error of the device in the guest
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.nodes, "rdma_cm"), nil, 0o000))
	_, err = s.openConnectionManager()
	require.ErrorIs(t, err, fs.ErrPermission)
	require.ErrorContains(t, err, "grant the user read and write access to the file")
}

// TestCMAddresses encodes addresses of the connection manager.
func TestCMAddresses(t *testing.T) {
	for text, length := range map[string]uint16{"192.0.2.1:7174": 16, "[2001:db8::1]:1": 28} {
		var a cmAddr
		addr := netip.MustParseAddrPort(text)
		require.Equal(t, length, a.encode(addr))
		require.Equal(t, addr, a.decode())
	}
	require.Equal(t, netip.AddrPort{}, new(cmAddr).decode())
}
