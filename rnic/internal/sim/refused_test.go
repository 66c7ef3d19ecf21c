package sim_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic/internal/sim"
	"github.com/softrnic/softrnic/verbs"
)

// refusing is two adapters, with a system that may refuse sends of the first to the second.
type refusing struct {
	t    *testing.T
	sim  *sim.Sim
	ends [2]sim.Endpoint
	mr   [2]verbs.MR
	cq   [2]verbs.CQ
	ah   verbs.AH
}

func newRefusing(t *testing.T, typ verbs.QPType) *refusing {
	w := &refusing{t: t, sim: sim.New(1)}
	var pd [2]verbs.PD
	for i := range w.ends {
		dev, err := w.sim.AddDevice(sim.DeviceOptions{})
		require.NoError(t, err)
		t.Cleanup(func() { dev.Close() })
		pd[i], err = dev.AllocPD()
		require.NoError(t, err)
		w.mr[i], err = pd[i].RegMR(make([]byte, 8192), verbs.AccessLocalWrite)
		require.NoError(t, err)
		w.cq[i], err = dev.CreateCQ(64)
		require.NoError(t, err)
		qp, err := pd[i].CreateQP(verbs.QPInitAttr{Type: typ, SendCQ: w.cq[i], RecvCQ: w.cq[i],
			Cap: verbs.QPCap{MaxSendWR: 16, MaxRecvWR: 16, MaxSendSGE: 1, MaxRecvSGE: 1}})
		require.NoError(t, err)
		w.ends[i] = sim.Endpoint{Device: dev, QP: qp, PSN: 100}
		if typ == verbs.UD {
			require.NoError(t, verbs.ActivateUD(qp, 7, 100))
		}
	}
	if typ != verbs.UD {
		require.NoError(t, w.sim.Connect(w.ends[0], w.ends[1]))
	} else {
		var err error
		w.ah, err = pd[0].CreateAH(w.ends[1].Device.AddressVector())
		require.NoError(t, err)
	}
	for range 8 {
		_, err := w.ends[1].QP.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{w.mr[1].SGE(0, 8192)}}})
		require.NoError(t, err)
	}
	return w
}

// refuse sets the error of the first adapter's sends; 0 is none.
func (w *refusing) refuse(errno syscall.Errno) {
	w.ends[0].Device.Port().RefuseTo(w.ends[1].Device.Addr(), errno)
}

// send posts messages of n bytes from the first adapter, numbered from 1.
func (w *refusing) send(count, n int) {
	for id := range count {
		wr := verbs.SendWR{WRID: uint64(id + 1), Opcode: verbs.WRSend, Flags: verbs.SendSignaled,
			SGList: []verbs.SGE{w.mr[0].SGE(0, n)}, AH: w.ah, RemoteQPN: w.ends[1].QP.Num(), RemoteQKey: 7}
		if w.ah == nil {
			wr.RemoteQPN, wr.RemoteQKey = 0, 0
		}
		_, err := w.ends[0].QP.PostSend([]verbs.SendWR{wr})
		require.NoError(w.t, err)
	}
}

// completions runs until the first adapter has n completions, and returns them.
func (w *refusing) completions(n int) []verbs.WC {
	w.sim.Run(func() bool { return w.cq[0].Len() >= n })
	wcs := make([]verbs.WC, 64)
	got, err := w.cq[0].Poll(wcs)
	require.NoError(w.t, err)
	require.Equal(w.t, n, got)
	return wcs[:n]
}

// refusals are errors of a system that refuses to send.
var refusals = []syscall.Errno{
	syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.EINVAL, syscall.EPERM, syscall.EACCES, syscall.EMSGSIZE,
}

// TestRefusedSendsAreNamed checks that the cause of the completion is the system's error: for RC
// after all retries within 50 ms, for UC and UD immediately and for that request alone.
func TestRefusedSendsAreNamed(t *testing.T) {
	for _, typ := range []verbs.QPType{verbs.RC, verbs.UC, verbs.UD} {
		for _, errno := range refusals {
			w := newRefusing(t, typ)
			w.refuse(errno)
			start := w.sim.Now()
			w.send(1, 8)
			wcs := w.completions(1)
			err := wcs[0].Err()
			require.ErrorIs(t, err, errno, "%v", typ)
			require.ErrorContains(t, err, "the system refuses to send to "+w.ends[1].Device.Addr().String())
			require.ErrorContains(t, err, errno.Error())
			require.Less(t, len(err.Error()), 250, err)
			var refused *verbs.RefusedError
			require.ErrorAs(t, err, &refused)
			if typ == verbs.RC {
				require.Equal(t, verbs.WCRetryExcErr, wcs[0].Status)
				require.Equal(t, 7, wcs[0].Failure.Retries)
				require.Equal(t, verbs.StateErr, w.ends[0].QP.State())
				require.Equal(t, 35*time.Millisecond, w.sim.Now()-start)
				continue
			}
			require.Equal(t, verbs.WCGeneralErr, wcs[0].Status)
			require.Equal(t, verbs.StateRTS, w.ends[0].QP.State())
			w.refuse(0)
			w.send(1, 8)
			wcs = w.completions(1)
			require.NoError(t, wcs[0].Err(), "%v does not send again", typ)
		}
	}
}

// TestRefusedSendsHeal checks that a route that returns in time costs an RC queue pair only the
// wait, and a system without buffers only a lost packet.
func TestRefusedSendsHeal(t *testing.T) {
	for _, errno := range append(refusals, syscall.ENOBUFS, syscall.EAGAIN, syscall.ENOMEM) {
		w := newRefusing(t, verbs.RC)
		w.send(2, 8) // the connection is in use
		w.completions(2)
		w.refuse(errno)
		w.ends[0].Device.ScheduleAt(w.sim.Now()+30*time.Millisecond, func() { w.refuse(0) })
		w.send(3, 5000)
		wcs := w.completions(3)
		for i := range wcs {
			require.NoError(t, wcs[i].Err(), "%v", errno)
		}
	}
}

// TestTransientRefusals checks that a system that is permanently without buffers does not shorten
// the retries, and that the completion names it. Datagrams are lost as on the wire.
func TestTransientRefusals(t *testing.T) {
	w := newRefusing(t, verbs.RC)
	w.refuse(syscall.ENOBUFS)
	start := w.sim.Now()
	w.send(1, 8)
	wcs := w.completions(1)
	require.ErrorIs(t, wcs[0].Err(), syscall.ENOBUFS)
	require.Greater(t, w.sim.Now()-start, 500*time.Millisecond)
	w = newRefusing(t, verbs.UD)
	w.refuse(syscall.ENOBUFS)
	w.send(1, 8)
	wcs = w.completions(1)
	require.NoError(t, wcs[0].Err())
}

// TestRefusedDatagramFailsAlone checks that of several messages the refused ones fail, in the order
// of the posts.
func TestRefusedDatagramFailsAlone(t *testing.T) {
	for _, typ := range []verbs.QPType{verbs.UC, verbs.UD} {
		w := newRefusing(t, typ)
		w.send(1, 8)
		w.refuse(syscall.ENETUNREACH)
		w.send(2, 8)
		w.refuse(0)
		w.send(1, 8)
		var failed []bool
		for _, wc := range w.completions(4) {
			failed = append(failed, wc.Err() != nil)
		}
		require.Equal(t, []bool{false, true, true, false}, failed)
	}
}
