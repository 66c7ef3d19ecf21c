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

// counted is a test under observation: what is on the cable, and both
// adapters' counters.
type counted struct {
	t       testing.TB
	g       *lab.Guest
	f       family
	capture *lab.Capture
	before  map[string]uint64 // of rxe
	lost    uint64            // packets, before they came to the cable
}

func count(t testing.TB, g *lab.Guest, f family) *counted {
	t.Helper()
	before, err := g.Counters(context.Background())
	require.NoError(t, err)
	c, err := lab.StartCapture()
	require.NoError(t, err)
	return &counted{t: t, g: g, f: f, capture: c, before: before}
}

// end waits for silence and compares, of the queue pairs 0 of two ends. It
// returns what the capture shows of either side.
func (c *counted) end(a, b peer.Side, mtu verbs.MTU) (host, guest *tally.Counts) {
	c.t.Helper()
	soft := softOf(a, b)
	rxe := c.settle(soft)
	frames, err := c.capture.Stop()
	require.NoError(c.t, err)
	defer func() {
		if c.t.Failed() {
			path := filepath.Join(c.t.ArtifactDir(), "cable.pcapng")
			require.NoError(c.t, lab.WriteFrames(path, frames))
			c.t.Log("the capture is in", path)
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
		what          string
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
			c.t.Errorf("%s: the counter says %d, the cable %d", same.what, same.counter, same.wire)
		}
	}
	// Of what rxe sends, some is lost before it comes to the cable.
	require.GreaterOrEqual(c.t, rxe["send_rnr_err"], uint64(guest.RNRNaks))
	if lost == 0 {
		require.Equal(c.t, uint64(guest.RNRNaks), rxe["send_rnr_err"])
	}
	// rxe counts a sequence NAK only if it acknowledges something.
	require.LessOrEqual(c.t, rxe["rcvd_seq_err"], uint64(host.SeqNaks))
	require.Zero(c.t, host.BadICRC+guest.BadICRC)
	return host, guest
}

// settle waits until neither side sends any more, and returns rxe's counters
// since the beginning.
func (c *counted) settle(soft *peer.Softrnic) map[string]uint64 {
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

// softOf is the end of a pair that is softrnic's.
func softOf(a, b peer.Side) *peer.Softrnic {
	if s, ok := a.(*peer.Softrnic); ok {
		return s
	}
	return b.(*peer.Softrnic)
}

// TestCounters: both adapters' counters and the capture agree, with losses on
// the way out of either side.
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
				{name: "softrnic loses the first of each", ours: "drop first FIRST; drop first MIDDLE; drop first LAST; drop first READ_REQUEST; drop first READ_RESPONSE_MIDDLE; drop first ATOMIC; drop first ATOMIC_ACKNOWLEDGE; drop first ACKNOWLEDGE"},
				{name: "softrnic loses one in ten", ours: "drop 10% ACKNOWLEDGE; drop 10% RC; drop 10% CNP; drop 5% MIDDLE"},
				{name: "rxe loses one in ten", theirs: lab.Faults{FromGuest: "loss 10%"}},
			} {
				if !wide() && (ki+fi+ci)%2 == 1 {
					continue
				}
				cell(t, counterT, c.name, []string{k.String(), f.name}, fmt.Sprintf("%v %s, %s", k, f.name, c.name), func(t *testing.T) {
					setFaults(t, g, c.theirs)
					clean := c.ours == "" && c.theirs == (lab.Faults{})
					o := verbs.ConnectOptions{MTU: verbs.MTU1024}
					if clean {
						o.Timeout = 20 // 4 s: a slow guest must not look like losses
					}
					a, b := openPair(t, g, k, f, 1, peer.Options{}, peer.Options{}, o)
					soft := softOf(a, b)
					require.NoError(t, soft.Device.SetImpair(c.ours))
					obs := count(t, g, f)
					exercise(t, a, b, rounds)
					host, guest := obs.end(a, b, verbs.MTU1024)
					require.Equal(t, clean, obs.lost == 0, "%d packets lost", obs.lost)
					if clean {
						require.Zero(t, host.Duplicates+guest.Duplicates+host.Gaps+guest.Gaps)
					}
				})
			}
		}
	}
}

// exercise does every operation some times, one after the other and in a row,
// and checks what it did.
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
	for range rounds { // many at once
		post(verbs.WRRDMAWrite, a.SGE(0, n))
		post(verbs.WRRDMARead, a.SGE(0, n))
		post(verbs.WRAtomicFetchAdd, a.SGE(8*n, 8))
		done(a, 3)
	}
	value, err := b.Get(n, 8)
	require.NoError(t, err)
	require.EqualValues(t, 2*rounds, binary.NativeEndian.Uint64(value))
}

// TestCountersRNR: the counters of refusals agree as well.
func TestCountersRNR(t *testing.T) {
	g := lab.Need(t)
	for _, k := range kinds {
		cell(t, counterT, "receives come late", []string{k.String(), families[0].name}, k.String(), func(t *testing.T) {
			a, b := openPair(t, g, k, families[0], 1, peer.Options{}, peer.Options{}, verbs.ConnectOptions{MTU: verbs.MTU1024})
			soft := softOf(a, b)
			obs := count(t, g, families[0])
			for range 5 {
				before := refusals(soft)
				require.NoError(t, a.PostSend(0, verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: a.SGE(0, 100)}))
				for refusals(soft) == before {
				}
				require.NoError(t, b.PostRecv(0, 1, b.SGE(0, 100)))
				require.NoError(t, poll(t, b, 1)[0].Err())
				require.NoError(t, poll(t, a, 1)[0].Err())
			}
			host, guest := obs.end(a, b, verbs.MTU1024)
			require.GreaterOrEqual(t, host.RNRNaks+guest.RNRNaks, 5)
		})
	}
}

// refusals is how many RNR NAKs softrnic has sent or received.
func refusals(soft *peer.Softrnic) uint64 {
	c := soft.Device.Inspect().Counters
	return c.RcvdRNRErr + c.SendRNRErr
}
