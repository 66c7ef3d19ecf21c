//go:build interop && linux

package uverbs

import (
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// handle returns an address handle to the device itself.
func (e *end) handle(t *testing.T, gid verbs.GID) verbs.AH {
	t.Helper()
	ah, err := e.pd.CreateAH(verbs.AHAttr{DGID: gid})
	require.NoError(t, err)
	return ah
}

func (e *end) gid(t *testing.T) verbs.GID {
	t.Helper()
	g, err := e.dev.QueryGID(1, 0)
	require.NoError(t, err)
	return g.GID
}

// TestUD sends datagrams to a queue pair, and to a multicast group.
func TestUD(t *testing.T) {
	const qkey = 0x1234
	a, b := newEnd(t, verbs.UD), newEnd(t, verbs.UD)
	require.NoError(t, verbs.ActivateUD(a.qp, qkey, 1))
	require.NoError(t, verbs.ActivateUD(b.qp, qkey, 2))
	ah := a.handle(t, b.gid(t))
	b.recv(t, 7, 0, 200)
	copy(a.mr.Bytes(), "a datagram")
	wr := verbs.SendWR{Opcode: verbs.WRSendWithImm, Imm: 5, SGList: []verbs.SGE{a.mr.SGE(0, 10)}, AH: ah, RemoteQPN: b.qp.Num(), RemoteQKey: qkey}
	a.post(t, wr)
	require.Equal(t, verbs.WCSuccess, a.next(t).Status)
	require.Equal(t, verbs.WC{WRID: 7, Opcode: verbs.WCRecv, Flags: verbs.WCGRH | verbs.WCWithImm, Imm: 5, ByteLen: 50, QPN: b.qp.Num(), SrcQPN: a.qp.Num()}, b.next(t))
	require.Equal(t, "a datagram", string(b.mr.Bytes()[40:50]))

	wr.SGList = []verbs.SGE{a.mr.SGE(0, 5000)}
	_, err := a.qp.PostSend([]verbs.SendWR{wr})
	require.ErrorIs(t, err, verbs.ErrLimit)
	require.NoError(t, ah.Close())
	wr.SGList = nil
	_, err = a.qp.PostSend([]verbs.SendWR{wr})
	require.ErrorIs(t, err, verbs.ErrClosed)

	group := verbs.GIDFromAddr(netip.MustParseAddr("239.1.2.3"))
	require.NoError(t, b.qp.AttachMcast(group))
	require.NoError(t, b.qp.DetachMcast(group))
	require.Error(t, b.qp.DetachMcast(group))
	require.ErrorIs(t, b.qp.AttachMcast(b.gid(t)), verbs.ErrInvalid)
}

// TestUC writes with immediate data on an unreliable connection.
func TestUC(t *testing.T) {
	a, b := pair(t, verbs.UC)
	copy(a.mr.Bytes(), "unreliable")
	b.recv(t, 1, 0, 0)
	a.post(t, verbs.SendWR{Opcode: verbs.WRRDMAWriteWithImm, Imm: 9, SGList: []verbs.SGE{a.mr.SGE(0, 10)}, RemoteAddr: b.mr.Addr() + 100, RKey: b.mr.RKey()})
	require.Equal(t, verbs.WCRDMAWrite, a.next(t).Opcode)
	require.Equal(t, verbs.WC{WRID: 1, Opcode: verbs.WCRecvRDMAWithImm, Flags: verbs.WCWithImm, Imm: 9, ByteLen: 10, QPN: b.qp.Num()}, b.next(t))
	require.Equal(t, "unreliable", string(b.mr.Bytes()[100:110]))
	_, err := a.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRRDMARead}})
	require.ErrorIs(t, err, verbs.ErrUnsupported)
}

// TestSRQ uses a shared receive queue with a limit, and resizes it.
func TestSRQ(t *testing.T) {
	a, b := newEnd(t, verbs.RC), newEnd(t, verbs.RC)
	srq, err := b.pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: 8, MaxSGE: 2})
	require.NoError(t, err)
	b.qp, err = b.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: b.cq, RecvCQ: b.cq, SRQ: srq, Cap: verbs.QPCap{MaxSendWR: 4, MaxSendSGE: 1}})
	require.NoError(t, err)
	require.ErrorIs(t, srq.Close(), verbs.ErrBusy)
	connect(t, a, b)
	wrs := make([]verbs.RecvWR, 4)
	for i := range wrs {
		wrs[i] = verbs.RecvWR{WRID: uint64(i), SGList: []verbs.SGE{b.mr.SGE(100*i, 100)}}
	}
	n, err := srq.PostRecv(wrs)
	require.NoError(t, err)
	require.Equal(t, 4, n)
	require.NoError(t, srq.Modify(verbs.SRQAttr{Limit: 3}, verbs.SRQLimit))
	attr, err := srq.Query()
	require.NoError(t, err)
	require.Equal(t, 3, attr.Limit)
	for i := range 2 {
		a.post(t, verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{a.mr.SGE(0, 8)}})
		require.Equal(t, verbs.WCSuccess, a.next(t).Status)
		require.EqualValues(t, i, b.next(t).WRID)
	}
	e, err := b.dev.AsyncEvent(soon(t))
	require.NoError(t, err)
	for e.Type != verbs.EventSRQLimitReached { // CommEst comes before
		e, err = b.dev.AsyncEvent(soon(t))
		require.NoError(t, err)
	}
	require.True(t, e.SRQ == srq)
	require.NoError(t, srq.Modify(verbs.SRQAttr{MaxWR: 40}, verbs.SRQMaxWR))
	for range 30 {
		_, err = srq.PostRecv(wrs[:1])
		require.NoError(t, err)
	}
	a.post(t, verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{a.mr.SGE(0, 8)}})
	require.Equal(t, verbs.WCSuccess, a.next(t).Status)
	require.EqualValues(t, 2, b.next(t).WRID, "the receives from before are still there")
	require.NoError(t, b.qp.Close())
	require.NoError(t, srq.Close())
}

// TestCQEvents waits for completions by Wait, and by a channel with a solicited event.
func TestCQEvents(t *testing.T) {
	a, b := newEnd(t, verbs.RC), newEnd(t, verbs.RC)
	ch, err := b.dev.CreateCompChannel()
	require.NoError(t, err)
	b.cq, err = ch.CreateCQ(16)
	require.NoError(t, err)
	b.qp, err = b.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: b.cq, RecvCQ: b.cq, Cap: verbs.QPCap{MaxSendWR: 4, MaxRecvWR: 8, MaxSendSGE: 1, MaxRecvSGE: 1}})
	require.NoError(t, err)
	connect(t, a, b)
	b.recv(t, 1, 0, 100)
	b.recv(t, 2, 0, 100)
	require.NoError(t, a.cq.ReqNotify(false))
	require.NoError(t, b.cq.ReqNotify(true))
	a.post(t, verbs.SendWR{Opcode: verbs.WRSend})
	require.NoError(t, a.cq.Wait(soon(t)))
	a.post(t, verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendSolicited})
	got, err := ch.Wait(soon(t))
	require.NoError(t, err)
	require.True(t, got == b.cq)
	require.Equal(t, 2, b.cq.Len(), "the event is that of the second message")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = ch.Wait(ended)
	require.ErrorIs(t, err, context.Canceled)

	// A resized queue keeps its completions.
	require.ErrorIs(t, b.cq.Resize(1), verbs.ErrInvalid)
	require.NoError(t, b.cq.Resize(100))
	require.GreaterOrEqual(t, b.cq.Depth(), 100)
	require.EqualValues(t, 1, b.next(t).WRID)
	require.EqualValues(t, 2, b.next(t).WRID)
	require.ErrorIs(t, b.cq.Close(), verbs.ErrBusy)
	require.NoError(t, b.qp.Close())
	require.NoError(t, b.cq.Close())
	require.NoError(t, ch.Close())
}

// TestReset drops the work of a queue pair and connects it again.
func TestReset(t *testing.T) {
	a, b := pair(t, verbs.RC)
	a.recv(t, 1, 0, 8)
	b.recv(t, 2, 0, 8)
	a.post(t, verbs.SendWR{WRID: 3, Opcode: verbs.WRSend})
	require.EqualValues(t, 2, b.next(t).WRID)
	for _, e := range []*end{a, b} {
		require.NoError(t, e.qp.Modify(verbs.QPAttr{State: verbs.StateReset}, verbs.AttrState))
		require.Zero(t, e.cq.Len(), "completions are dropped")
	}
	connect(t, a, b)
	b.recv(t, 4, 0, 8)
	a.post(t, verbs.SendWR{WRID: 5, Opcode: verbs.WRSend})
	require.EqualValues(t, 5, a.next(t).WRID)
	require.EqualValues(t, 4, b.next(t).WRID)
	attr, init := a.qp.Query()
	require.Equal(t, verbs.StateRTS, attr.State)
	require.Equal(t, b.qp.Num(), attr.DestQPN)
	require.Equal(t, 0, attr.AV.SGIDIndex)
	require.Equal(t, b.gid(t), attr.AV.DGID)
	require.True(t, init.SendCQ == a.cq)
	err := a.qp.Modify(verbs.QPAttr{State: verbs.StateInit}, verbs.AttrState)
	var e *verbs.TransitionError
	require.ErrorAs(t, err, &e)
}

// TestMemoryWindow binds windows of both types, and accesses memory through them.
func TestMemoryWindow(t *testing.T) {
	for name, alloc := range map[string]func(pd verbs.PD) (verbs.MW, error){"1": verbs.PD.AllocMWType1, "2": verbs.PD.AllocMW} {
		t.Run("type "+name, func(t *testing.T) {
			a, b := pair(t, verbs.RC)
			mr, err := b.pd.RegMR(make([]byte, 4096), verbs.AccessLocalWrite|verbs.AccessMWBind)
			require.NoError(t, err)
			require.Zero(t, mr.RKey())
			mw, err := alloc(b.pd)
			require.NoError(t, err)
			key := verbs.IncRKey(mw.RKey())
			b.post(t, verbs.SendWR{Opcode: verbs.WRBindMW, Bind: verbs.BindMW{MW: mw, RKey: key, MR: mr, Addr: mr.Addr() + 100, Length: 50, Access: verbs.AccessRemoteWrite}})
			wc := b.next(t)
			require.NoError(t, wc.Err())
			require.Equal(t, verbs.WCBindMW, wc.Opcode)
			require.Equal(t, key, mw.RKey())
			require.ErrorIs(t, mr.Close(), verbs.ErrBusy)
			copy(a.mr.Bytes(), "through a window")
			wr := verbs.SendWR{Opcode: verbs.WRRDMAWrite, SGList: []verbs.SGE{a.mr.SGE(0, 16)}, RemoteAddr: mr.Addr() + 100, RKey: key}
			a.post(t, wr)
			require.Equal(t, verbs.WCSuccess, a.next(t).Status)
			require.Equal(t, "through a window", string(mr.Bytes()[100:116]))
			if name == "2" {
				b.post(t, verbs.SendWR{Opcode: verbs.WRLocalInv, InvKey: key})
				require.Equal(t, verbs.WCLocalInv, b.next(t).Opcode)
			} else { // a binding to nothing
				b.post(t, verbs.SendWR{Opcode: verbs.WRBindMW, Bind: verbs.BindMW{MW: mw, RKey: verbs.IncRKey(key), MR: mr}})
				require.Equal(t, verbs.WCSuccess, b.next(t).Status)
			}
			a.post(t, wr)
			require.Equal(t, verbs.WCRemAccessErr, a.next(t).Status)
			require.NoError(t, mw.Close())
			require.NoError(t, mr.Close())
		})
	}
}

// TestAttributes compares the device with the files of the kernel.
func TestAttributes(t *testing.T) {
	e := newEnd(t, verbs.RC)
	attr := e.dev.QueryDevice()
	guid, err := os.ReadFile("/sys/class/infiniband/" + deviceName() + "/node_guid")
	require.NoError(t, err)
	require.Equal(t, strings.ReplaceAll(strings.TrimSpace(string(guid)), ":", ""), fmt.Sprintf("%016x", attr.NodeGUID))
	require.Equal(t, 1, attr.PhysPortCnt)
	require.Equal(t, verbs.AtomicHCA, attr.AtomicCap)
	port, err := e.dev.QueryPort(1)
	require.NoError(t, err)
	require.Equal(t, "Ethernet", port.LinkLayer)
	require.Equal(t, verbs.PortActive, port.State)
	require.True(t, e.gid(t).Addr().Is4())
	_, err = Open(Options{Name: "none"})
	require.ErrorContains(t, err, "but "+deviceName())
}

// TestUnprivileged runs transfers as another user, and with a limit of locked memory.
func TestUnprivileged(t *testing.T) {
	const child = "SOFTRNIC_UVERBS_CHILD"
	if os.Getenv(child) != "" {
		require.Equal(t, 65534, os.Getuid())
		limit := unix.Rlimit{Cur: 64 << 10, Max: 64 << 10}
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit))
		dev, err := Open(Options{Name: deviceName()})
		require.NoError(t, err)
		defer dev.Close()
		pd, err := dev.AllocPD()
		require.NoError(t, err)
		_, err = pd.RegMR(make([]byte, 1<<20), verbs.AccessLocalWrite)
		require.ErrorIs(t, err, verbs.ErrNoMemory)
		require.ErrorContains(t, err, "the limit of locked memory is 65536 bytes")
		_, err = cm.New(dev, cm.Options{})
		require.ErrorIs(t, err, fs.ErrPermission)
		require.ErrorContains(t, err, "/dev/infiniband/rdma_cm: permission denied; grant the user read and write access to the file")
		mr, err := pd.RegMR(make([]byte, 4096), verbs.AccessLocalWrite)
		require.NoError(t, err)
		require.NoError(t, mr.Close())
		return
	}
	node := "/dev/infiniband/uverbs0"
	require.NoError(t, os.Chmod("/dev/infiniband/rdma_cm", 0o600))
	run := func() (string, error) {
		c := exec.Command("/proc/self/exe", "-test.run", "^TestUnprivileged$", "-test.v")
		c.Env = append(os.Environ(), child+"=1")
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := c.CombinedOutput()
		return string(out), err
	}
	require.NoError(t, os.Chmod(node, 0o600))
	out, err := run()
	require.Error(t, err)
	require.Contains(t, out, "permission denied; grant the user read and write access to the file")
	require.NoError(t, os.Chmod(node, 0o666))
	out, err = run()
	require.NoError(t, err, out)
}
