//go:build interop && linux

package interop

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/lab"
	"github.com/softrnic/softrnic/interop/peer"
	"github.com/softrnic/softrnic/interop/tally"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// counterCheck compares the packets on the cable with the counters of both adapters.
type counterCheck struct {
	t       testing.TB
	g       *lab.Guest
	f       family
	capture *lab.Capture
	before  map[string]uint64 // of rxe
	lost    uint64            // packets dropped before the cable
}

// startCheck starts a capture and reads the counters of rxe.
func startCheck(t testing.TB, g *lab.Guest, f family) *counterCheck {
	t.Helper()
	before, err := g.Counters(context.Background())
	require.NoError(t, err)
	c, err := lab.StartCapture()
	require.NoError(t, err)
	return &counterCheck{t: t, g: g, f: f, capture: c, before: before}
}

// compareCounters waits until no more packets are sent and compares the counters of the queue
// pairs 0 of both sides with the capture. It returns the counts of the capture by sender.
func (c *counterCheck) compareCounters(a, b peer.Side, mtu verbs.MTU) (host, guest *tally.Counts) {
	c.t.Helper()
	soft := softOf(a, b)
	rxe := c.waitIdle(soft)
	frames, err := c.capture.Stop()
	require.NoError(c.t, err)
	defer func() {
		if c.t.Failed() {
			path := filepath.Join(c.t.ArtifactDir(), "cable.pcapng")
			require.NoError(c.t, lab.WriteFrames(path, frames))
			c.t.Log("capture:", path)
		}
	}()
	sum := tally.New(mtu.Bytes())
	ea, eb := a.Endpoint(0), b.Endpoint(0)
	sum.StartFlow(ea.GID.Addr(), eb.GID.Addr(), eb.QPN, wire.PSN(ea.PSN))
	sum.StartFlow(eb.GID.Addr(), ea.GID.Addr(), ea.QPN, wire.PSN(eb.PSN))
	for _, f := range frames {
		if err := sum.Add(f.Data); !errors.Is(err, tally.ErrNotRoCE) {
			require.NoError(c.t, err)
		}
	}
	host, guest = sum.From(c.f.host), sum.From(c.f.guest)
	lost, _, err := c.g.DroppedPackets(context.Background())
	require.NoError(c.t, err)
	snapshot := soft.Device.Inspect()
	ours := snapshot.Counters
	faults := uint64(0)
	if snapshot.Faults != nil {
		faults = snapshot.Faults.Counters.Dropped
	}
	c.lost = lost + faults
	c.t.Logf("softrnic %+v\nrxe %v, %d of its packets lost\ncable: from softrnic %+v\n       from rxe %+v", ours.QPCounters, rxe, lost, *host, *guest)
	for _, same := range []struct {
		name          string
		counter, wire uint64
	}{
		{"softrnic sent", ours.SentPkts, uint64(host.Packets) + faults},
		{"softrnic received", ours.RcvdPkts, uint64(guest.Packets)},
		{"softrnic got duplicates", ours.DuplicateRequest, uint64(guest.Duplicates)},
		{"softrnic saw gaps", ours.OutOfSeqRequest, uint64(guest.Gaps)},
		{"softrnic sent RNR NAKs", ours.SendRNRErr, uint64(host.RNRNaks)},
		{"softrnic got RNR NAKs", ours.RcvdRNRErr, uint64(guest.RNRNaks)},
		{"softrnic got sequence NAKs", ours.RcvdSeqErr, uint64(guest.SeqNaks)},
		{"rxe sent", rxe["sent_pkts"], uint64(guest.Packets) + lost},
		{"rxe received", rxe["rcvd_pkts"], uint64(host.Packets)},
		{"rxe got duplicates", rxe["duplicate_request"], uint64(host.Duplicates)},
		{"rxe saw gaps", rxe["out_of_seq_request"], uint64(host.Gaps)},
		{"rxe got RNR NAKs", rxe["rcvd_rnr_err"], uint64(host.RNRNaks)},
	} {
		if same.counter != same.wire {
			c.t.Errorf("%s: counter %d, cable %d", same.name, same.counter, same.wire)
		}
	}
	// Some packets of rxe are dropped before the cable.
	require.GreaterOrEqual(c.t, rxe["send_rnr_err"], uint64(guest.RNRNaks))
	if lost == 0 {
		require.Equal(c.t, uint64(guest.RNRNaks), rxe["send_rnr_err"])
	}
	// rxe counts a sequence NAK only if it acknowledges a packet.
	require.LessOrEqual(c.t, rxe["rcvd_seq_err"], uint64(host.SeqNaks))
	require.Zero(c.t, host.BadICRC+guest.BadICRC)
	return host, guest
}

// waitIdle waits until neither side sends packets and returns the increase of rxe's
// counters since startCheck.
func (c *counterCheck) waitIdle(soft *peer.Softrnic) map[string]uint64 {
	c.t.Helper()
	var last map[string]uint64
	lastOurs := uint64(0)
	for {
		now, err := c.g.Counters(context.Background())
		require.NoError(c.t, err)
		ours := soft.Device.Inspect().Counters
		if maps.Equal(now, last) && ours.SentPkts+ours.RcvdPkts == lastOurs {
			for name := range now {
				now[name] -= c.before[name]
			}
			return now
		}
		last, lastOurs = now, ours.SentPkts+ours.RcvdPkts
		time.Sleep(300 * time.Millisecond) // longer than any timeout here
	}
}

// softOf returns the side of a pair that is softrnic.
func softOf(a, b peer.Side) *peer.Softrnic {
	if s, ok := a.(*peer.Softrnic); ok {
		return s
	}
	return b.(*peer.Softrnic)
}

// TestCounters checks that the counters of both adapters agree with the capture, with
// loss on the send path of either side.
func TestCounters(t *testing.T) {
	g := lab.Need(t)
	const rounds = 10
	for ki, k := range kinds {
		for fi, f := range families {
			for ci, c := range []struct {
				name, ours string
				theirs     lab.Faults
			}{
				{name: "clean"},
				{name: "softrnic drops the first of each", ours: "drop first FIRST; drop first MIDDLE; drop first LAST; drop first READ_REQUEST; drop first READ_RESPONSE_MIDDLE; drop first ATOMIC; drop first ATOMIC_ACKNOWLEDGE; drop first ACKNOWLEDGE"},
				{name: "softrnic drops one in ten", ours: "drop 10% ACKNOWLEDGE; drop 10% RC; drop 10% CNP; drop 5% MIDDLE"},
				{name: "rxe drops one in ten", theirs: lab.Faults{FromGuest: "loss 10%"}},
			} {
				if !isWide() && (ki+fi+ci)%2 == 1 {
					continue
				}
				cell(t, counterT, c.name, []string{k.String(), f.name}, fmt.Sprintf("%v %s, %s", k, f.name, c.name), func(t *testing.T) {
					setFaults(t, g, c.theirs)
					clean := c.ours == "" && c.theirs == (lab.Faults{})
					o := verbs.ConnectOptions{MTU: verbs.MTU1024}
					if clean {
						o.AckTimeout = 4 * time.Second // no retransmissions although the guest is slow
					}
					a, b := openPair(t, g, k, f, 1, peer.Options{}, peer.Options{}, o)
					soft := softOf(a, b)
					require.NoError(t, soft.Device.SetImpair(c.ours))
					obs := startCheck(t, g, f)
					exercise(t, a, b, rounds)
					host, guest := obs.compareCounters(a, b, verbs.MTU1024)
					require.Equal(t, clean, obs.lost == 0, "%d packets lost", obs.lost)
					if clean {
						require.Zero(t, host.Duplicates+guest.Duplicates+host.Gaps+guest.Gaps)
					}
				})
			}
		}
	}
}

// exercise executes every operation several times, one by one and many at once, and
// checks the data.
func exercise(t testing.TB, a, b peer.Side, rounds int) {
	t.Helper()
	const n = 3000
	require.NoError(t, b.Put(n, make([]byte, 8)))
	post := func(op verbs.WROpcode, sges []verbs.SGE) {
		t.Helper()
		wr := verbs.SendWR{Opcode: op, Flags: verbs.SendSignaled, SGList: sges, RemoteAddr: b.Addr(0), RKey: b.RKey(), CompareAdd: 1}
		if op == verbs.WRAtomicFetchAdd {
			wr.RemoteAddr = b.Addr(n)
		}
		require.NoError(t, a.PostSend(0, wr))
	}
	done := func(end peer.Side, k int) {
		t.Helper()
		for _, wc := range poll(t, end, k) {
			require.NoError(t, wc.Err())
		}
	}
	for i := range rounds {
		seed := uint32(i)
		require.NoError(t, a.Fill(0, n, seed))
		require.NoError(t, b.PostRecv(0, 1, b.SGE(0, n)))
		post(verbs.WRSend, a.SGE(0, n))
		done(b, 1)
		done(a, 1)
		post(verbs.WRRDMAWrite, a.SGE(0, n))
		done(a, 1)
		require.NoError(t, a.Fill(0, n, ^seed))
		post(verbs.WRRDMARead, a.SGE(0, n))
		done(a, 1)
		for _, end := range []peer.Side{a, b} {
			sum, err := end.Sum(0, n)
			require.NoError(t, err)
			require.Equal(t, peer.PatternSum(n, seed), sum)
		}
		post(verbs.WRAtomicFetchAdd, a.SGE(8*n, 8))
		done(a, 1)
		old, err := a.Get(8*n, 8)
		require.NoError(t, err)
		require.EqualValues(t, i, binary.NativeEndian.Uint64(old))
	}
	for range rounds { // concurrently
		post(verbs.WRRDMAWrite, a.SGE(0, n))
		post(verbs.WRRDMARead, a.SGE(0, n))
		post(verbs.WRAtomicFetchAdd, a.SGE(8*n, 8))
		done(a, 3)
	}
	value, err := b.Get(n, 8)
	require.NoError(t, err)
	require.EqualValues(t, 2*rounds, binary.NativeEndian.Uint64(value))
}

// TestCountersRNR checks that the counters of RNR NAKs agree with the capture.
func TestCountersRNR(t *testing.T) {
	g := lab.Need(t)
	for _, k := range kinds {
		cell(t, counterT, "receives posted late", []string{k.String(), families[0].name}, k.String(), func(t *testing.T) {
			a, b := openPair(t, g, k, families[0], 1, peer.Options{}, peer.Options{}, verbs.ConnectOptions{MTU: verbs.MTU1024})
			soft := softOf(a, b)
			obs := startCheck(t, g, families[0])
			for range 5 {
				before := rnrNAKs(soft)
				require.NoError(t, a.PostSend(0, verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: a.SGE(0, 100)}))
				for rnrNAKs(soft) == before {
				}
				require.NoError(t, b.PostRecv(0, 1, b.SGE(0, 100)))
				require.NoError(t, poll(t, b, 1)[0].Err())
				require.NoError(t, poll(t, a, 1)[0].Err())
			}
			host, guest := obs.compareCounters(a, b, verbs.MTU1024)
			require.GreaterOrEqual(t, host.RNRNaks+guest.RNRNaks, 5)
		})
	}
}

// rnrNAKs returns the number of RNR NAKs that softrnic has sent or received.
func rnrNAKs(soft *peer.Softrnic) uint64 {
	c := soft.Device.Inspect().Counters
	return c.RcvdRNRErr + c.SendRNRErr
}
