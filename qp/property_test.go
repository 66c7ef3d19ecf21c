package qp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
)

// TestReliableUnderChaos checks that on any network the memory of both ends is as if all requests
// had been executed one by one, that every request and receive completes once and in order, and
// that no connection fails with the usual retries. SOFTRNIC_SEED runs one seed, SOFTRNIC_SEEDS that
// many.
func TestReliableUnderChaos(t *testing.T) {
	first, n := uint64(1), uint64(2000)
	if testing.Short() {
		n = 200
	}
	if v, err := strconv.ParseUint(os.Getenv("SOFTRNIC_SEEDS"), 10, 64); err == nil {
		n = v
	}
	if v, err := strconv.ParseUint(os.Getenv("SOFTRNIC_SEED"), 10, 64); err == nil {
		first, n = v, 1
	}
	var total Counters
	for seed := first; seed < first+n; seed++ {
		if what := runChaos(t, seed, &total); what != "" {
			t.Fatalf("seed %d: %s", seed, what)
		}
	}
	t.Logf("%+v", total)
	if n >= 200 {
		require.Positive(t, total.SentSacks)
		require.Positive(t, total.RcvdSacks)
		require.Positive(t, total.KeptRequests)
	}
}

// runChaos runs one seed and returns an error.
func runChaos(t *testing.T, seed uint64, total *Counters) string {
	rng := rand.New(rand.NewPCG(seed, 0x5eed))
	pick := func(v ...int) int { return v[rng.IntN(len(v))] }
	rd := uint8(pick(1, 2, 4, 8))
	p := connect(t, withMTU(verbs.MTU(pick(1, 1, 2, 3))), withPSN(uint32(pick(0, 0xffffe0, 0xfffff0, 0x7ffff0, rng.IntN(1<<24)))), func(o *options) {
		o.credits, o.srq = rng.IntN(2) == 0, rng.IntN(4) == 0
		code := uint8(1 + rng.IntN(14))
		buffer := uint32(pick(0, 64<<10, 1<<20))
		selective := rng.IntN(2) == 0
		o.attr = func(a *verbs.QPAttr) {
			a.MaxRdAtomic, a.MaxDestRdAtomic, a.MinRNRTimer, a.AV.PeerBuffer = rd, rd, code, buffer
			a.AV.Selective = selective
		}
	})
	net := &network{rng: rng, now: 1, room: pick(1, 2, 3, 8, 64), lazy: float64(pick(0, 1)) / 2,
		loss: float64(pick(0, 1, 5)) / 100, dup: float64(pick(0, 0, 5)) / 100, reorder: float64(pick(0, 0, 5, 20)) / 100}
	for _, n := range []*node{p.a, p.b} {
		for i := range n.buf[:sinkAt] {
			n.buf[i] = byte(rng.Uint32())
		}
		n.readPart = n.mtu * uint32(pick(1, 2, 1000))
	}
	sides := []*side{newSide(rng, p.a, p.b, 1+rng.IntN(40)), newSide(rng, p.b, p.a, 1+rng.IntN(40))}
	for i, n := range []*node{p.a, p.b} {
		e := &end{node: n, app: 1}
		e.act = func() {
			if sides[i].post(net.now) {
				e.app = net.now + reliability.Time(rng.Int64N(100*reliability.Microsecond)) + 1
			}
			net.scheduleBatch(0)
			net.scheduleBatch(1) // receives are posted there
		}
		net.ends[i] = e
	}
	for events := 0; net.step(); events++ {
		if events > 200_000 {
			return "it does not end\n" + net.describePackets()
		}
	}
	for _, n := range []*node{p.a, p.b} {
		k := n.Counters()
		total.SentSacks += k.SentSacks
		total.RcvdSacks += k.RcvdSacks
		total.KeptRequests += k.KeptRequests
		total.Retransmitted += k.Retransmitted
		total.Timeouts += k.Timeouts
		total.Probes += k.Probes
	}
	for i, s := range sides {
		if what := s.compareResults(); what != "" {
			return fmt.Sprintf("side %d: %s\n%s", i, what, net.describePackets())
		}
	}
	return ""
}

// compareResults compares the results with the model.
func (s *side) compareResults() string {
	var sends, receives []string
	for i := range s.from.wcs {
		if !s.from.wcs[i].Opcode.IsRecv() {
			sends = append(sends, wcString(&s.from.wcs[i]))
		}
	}
	for i := range s.to.wcs {
		if s.to.wcs[i].Opcode.IsRecv() {
			receives = append(receives, wcString(&s.to.wcs[i]))
		}
	}
	for what, l := range map[string][2][]string{"requests": {s.sends, sends}, "receives": {s.receives, receives}} {
		if want, got := strings.Join(l[0], "\n"), strings.Join(l[1], "\n"); want != got {
			return fmt.Sprintf("completions of %s: want\n%s\ngot\n%s", what, want, got)
		}
	}
	if len(s.from.events) > 0 {
		return fmt.Sprint("events ", s.from.events)
	}
	for _, m := range []struct {
		what      string
		want, got []byte
		from, to  int
	}{
		{"memory the peer works on", s.model, s.to.buf, exposedAt, sinkAt},
		{"receives", s.model, s.to.buf, recvAt, regionBytes},
		{"results of reads and atomics", s.results, s.from.buf, sinkAt, recvAt},
		{"source", s.results, s.from.buf, sourceAt, exposedAt},
	} {
		if !bytes.Equal(m.want[m.from:m.to], m.got[m.from:m.to]) {
			for i := m.from; ; i++ {
				if m.want[i] != m.got[i] {
					return fmt.Sprintf("%s: byte %d is %x, should be %x", m.what, i, m.got[i], m.want[i])
				}
			}
		}
	}
	return ""
}

// describePackets returns the last packets of both ends.
func (n *network) describePackets() string {
	var b strings.Builder
	for i, e := range n.ends {
		send, recv := e.Queued()
		fmt.Fprintf(&b, "end %d: %v, %d requests, %d receives, una %d next %d top %d, retries left %+v\n%s\n",
			i, e.State(), send, recv, e.una, e.next, e.top, e.retry, strings.Join(e.trace, "\n"))
	}
	return b.String()
}
