package sim_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/rnic/internal/sim"
	"github.com/softrnic/softrnic/verbs"
)

// stopNowAndThen runs the host of an end for some milliseconds at a time and stops it in between
// for 10 ms to 10 s, the given number of times.
func stopNowAndThen(e *end, r *rand.Rand, times int) {
	at := time.Duration(0)
	for range times {
		at += time.Duration(r.Int64N(int64(3 * time.Millisecond)))
		d := time.Duration(float64(10*time.Millisecond) * math.Pow(1000, r.Float64()))
		e.dev.ScheduleAt(at, func() { e.dev.StopFor(d) })
		at += d
	}
}

// postAtTimes has the program of an end call post n times within 20 s, while its host runs.
func postAtTimes(e *end, r *rand.Rand, n int, post func(id uint64)) {
	due, id, app := 0, uint64(0), e.dev.App
	for range n {
		e.dev.ScheduleAt(time.Duration(r.Int64N(int64(20*time.Second))), func() { due++ })
	}
	e.dev.App = func() {
		for ; due > 0; due-- {
			post(id)
			id++
		}
		app()
	}
}

// newDatagramQP creates a UD queue pair with RDMA.
func newDatagramQP(t *testing.T, e *end) verbs.DatagramRDMA {
	qp, err := e.pd.CreateQP(verbs.QPInitAttr{Type: verbs.UD, SendCQ: e.cq, RecvCQ: e.cq,
		Cap: verbs.QPCap{MaxSendWR: 64, MaxSendSGE: 1}, MaxDatagramRDMA: 64})
	require.NoError(t, err)
	require.NoError(t, verbs.ActivateUD(qp, 1, 0))
	return qp.(verbs.DatagramRDMA)
}

// connectUD makes two UD queue pairs peers, of which one gives up after a second, and returns its
// handle of the other.
func connectUD(t *testing.T, a *end, qa verbs.DatagramRDMA, b *end, qb verbs.DatagramRDMA) verbs.AH {
	to, err := qa.CreatePeer(verbs.PeerAttr{AH: b.dev.AddressVector(), QPN: qb.Num(), Access: verbs.AccessRemote, GiveUp: time.Second})
	require.NoError(t, err)
	from, err := qb.CreatePeer(verbs.PeerAttr{AH: a.dev.AddressVector(), QPN: qa.Num(), Access: verbs.AccessRemote})
	require.NoError(t, err)
	require.NoError(t, to.Connect(from.Token()))
	require.NoError(t, from.Connect(to.Token()))
	return to
}

// TestStoppedHostKeepsItsConnection checks that a requester whose process gets no processor for up
// to 10 s, repeatedly, does not fail a responsive peer.
func TestStoppedHostKeepsItsConnection(t *testing.T) {
	for seed := range uint64(60) {
		s := sim.New(seed)
		far := sim.DeviceOptions{Link: memory.Options{Delay: time.Millisecond}} // so that requests are in flight at a stop
		a, b := newEnd(t, s, far), newEnd(t, s, far)
		r := s.Rand()
		o := verbs.ConnectOptions{AckTimeout: verbs.AckTimeout(uint8(12 + r.IntN(3))), Retries: r.IntN(4)}
		if o.Retries == 0 {
			o.Retries = -1
		}
		known := r.IntN(2) == 0
		require.NoError(t, s.Connect(sim.Endpoint{Device: a.dev, QP: a.qp, Options: o, HideRecvBuffer: !known}, sim.Endpoint{Device: b.dev, QP: b.qp, Options: o, HideRecvBuffer: !known}))
		stopNowAndThen(a, r, 6)
		const n = 40
		postAtTimes(a, r, n, func(id uint64) { a.write(t, id, b, 1+r.IntN(regionSize)) })
		s.RunFor(time.Minute)
		require.Len(t, a.wcs, n, "seed %d", seed)
		for _, wc := range a.wcs {
			require.Equal(t, verbs.WCSuccess, wc.Status, "seed %d: %v", seed, wc.Err())
		}
	}
}

// TestStoppedHostKeepsItsDatagramPeers checks the same for RDMA over UD.
func TestStoppedHostKeepsItsDatagramPeers(t *testing.T) {
	for seed := range uint64(20) {
		s := sim.New(seed)
		a, b := newEnd(t, s, sim.DeviceOptions{Impair: "loss 20%"}), newEnd(t, s, sim.DeviceOptions{})
		qa, qb := newDatagramQP(t, a), newDatagramQP(t, b)
		to := connectUD(t, a, qa, b, qb)
		stopNowAndThen(a, s.Rand(), 4)
		const n = 10
		postAtTimes(a, s.Rand(), n, func(id uint64) {
			_, err := qa.PostSend([]verbs.SendWR{{WRID: id, Opcode: verbs.WRRDMARead, AH: to, SGList: []verbs.SGE{a.mr.SGE(0, 8)},
				RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()}})
			require.NoError(t, err)
		})
		s.RunFor(time.Minute)
		require.Len(t, a.wcs, n, "seed %d", seed)
		for _, wc := range a.wcs {
			require.Equal(t, verbs.WCSuccess, wc.Status, "seed %d: %v", seed, wc.Err())
		}
	}
}

// TestDeadPeerFailsInTime checks that a terminated peer fails later only by the time in which the
// requester itself does not run, and one more timeout.
func TestDeadPeerFailsInTime(t *testing.T) {
	const timeout = 67108864 * time.Nanosecond // code 14
	budget := timeout + 2*timeout + 6*4*timeout
	for name, stopped := range map[string]time.Duration{"requester runs": 0, "requester stops": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			s := sim.New(1)
			a, b := connectPair(t, s, sim.DeviceOptions{}, sim.DeviceOptions{})
			b.dev.StopFor(time.Hour)
			a.write(t, 1, b, 8)
			if stopped > 0 {
				a.dev.ScheduleAt(timeout/2, func() { a.dev.StopFor(stopped) })
			}
			require.True(t, s.Run(func() bool { return len(a.wcs) > 0 }))
			require.Equal(t, verbs.WCRetryExcErr, a.wcs[0].Status)
			require.GreaterOrEqual(t, s.Now(), budget)
			require.LessOrEqual(t, s.Now(), budget+stopped+4*timeout)
		})
	}
}
