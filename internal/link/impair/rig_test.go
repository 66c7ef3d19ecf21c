package impair

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/wire"
	"github.com/stretchr/testify/require"
)

var (
	there  = netip.MustParseAddrPort("10.0.0.2:4791")
	ways   = &wire.Path{Dst: there}                         // the path to the peer, not ECN-capable
	wayECT = &wire.Path{Dst: there, TrafficClass: 0x68 | 2} // ECN-capable
	back   = &wire.Path{Dst: here, TrafficClass: 0x68}      // the reverse path
	parse  = func(text string) Spec { return must(Parse(text)) }
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// rig is an impaired link and a plain one on an in-memory network.
type rig struct {
	t       testing.TB
	network *memory.Network
	conn    *Conn        // at here
	peer    *memory.Conn // at there
	batch   *link.Batch
	read    *link.Datagrams
}

func newRig(t testing.TB, spec string) *rig {
	t.Helper()
	n := memory.New(1)
	r := &rig{
		t: t, network: n,
		peer:  must(n.Attach(there, memory.Options{})),
		batch: link.NewBatch(1 << 20),
		read:  link.NewDatagrams(4),
	}
	conn, err := New(must(n.Attach(here, memory.Options{})), parse(spec), n.Now)
	require.NoError(t, err)
	r.conn = conn
	return r
}

// packet describes a packet to send.
type packet struct {
	op       wire.Opcode
	qpn      uint32
	psn      wire.PSN
	syndrome wire.Syndrome // of acknowledgements
	payload  int
	to       *wire.Path // nil for ways
}

// appendTo appends the packet to a batch.
func (p packet) appendTo(b *link.Batch, to *wire.Path) {
	if p.to != nil {
		to = p.to
	}
	info := p.op.Info()
	pkt := b.Next(to, max(info.HeaderLen, wire.BTHLen)+p.payload+wire.ICRCLen)
	clear(pkt)
	h := wire.BTH{Opcode: p.op, DestQPN: p.qpn, PSN: p.psn}
	h.Put(pkt)
	if info.AETH {
		wire.AETH{Syndrome: p.syndrome}.Put(pkt[wire.BTHLen:])
	}
}

// train returns n packets of one QP with PSNs from 0.
func train(op wire.Opcode, n int) []packet {
	all := make([]packet, n)
	for i := range all {
		all[i] = packet{op: op, qpn: 7, psn: wire.PSN(i), payload: 64}
	}
	return all
}

// send sends packets on the impaired link as one batch.
func (r *rig) send(all ...packet) {
	r.t.Helper()
	r.batch.Reset()
	for _, p := range all {
		p.appendTo(r.batch, ways)
	}
	require.NoError(r.t, r.conn.WriteBatch(r.batch))
}

// sendBack sends packets on the plain link as one batch.
func (r *rig) sendBack(all ...packet) {
	r.t.Helper()
	r.batch.Reset()
	for _, p := range all {
		p.appendTo(r.batch, back)
	}
	require.NoError(r.t, r.peer.WriteBatch(r.batch))
}

// seen is a received packet.
type seen struct {
	at     int64
	op     wire.Opcode
	psn    wire.PSN
	icrc   wire.ICRCResult
	merged int // packets in its datagram
	tos    uint8
	fecn   bool
}

// run advances the time until no event is left, and returns the packets that c received from src.
func (r *rig) run(c link.Conn, src netip.AddrPort) (all []seen) {
	r.t.Helper()
	s := wire.NewICRC(src, c.LocalAddr())
	for {
		for {
			n, err := c.ReadBatch(r.read)
			require.NoError(r.t, err)
			if n == 0 {
				break
			}
			for _, d := range r.read.Msgs() {
				require.Equal(r.t, src, d.Src)
				for i := range d.Count() {
					pkt := d.Packet(i)
					result, id := s.Check(pkt, d.ID+uint16(i))
					if result == wire.ICRCMember {
						require.Fail(r.t, "not sealed for its identification", "%d of %d in the datagram: %d", i, d.Count(), id)
					}
					h := wire.ParseBTH(pkt)
					all = append(all, seen{r.network.Now(), h.Opcode, h.PSN, result, d.Count(), d.TOS, h.FECN})
				}
			}
		}
		next, ok := r.network.NextEvent()
		if due := r.conn.NextDue(); due != 0 && (!ok || due < next) {
			next, ok = due, true
		}
		if !ok {
			return all
		}
		r.network.AdvanceTo(next)
		require.NoError(r.t, r.conn.Flush(next))
	}
}

// runPeer and runHere return the packets that arrive at the peer, or here.
func (r *rig) runPeer() []seen { r.t.Helper(); return r.run(r.peer, here) }
func (r *rig) runHere() []seen { r.t.Helper(); return r.run(r.conn, there) }

// psns returns the PSNs of packets, each followed by "!" if its ICRC is invalid.
func psns(all []seen) string {
	var words []string
	for _, s := range all {
		w := fmt.Sprint(s.psn)
		if s.icrc == wire.ICRCBad {
			w += "!"
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

// groups returns the numbers of packets in the received datagrams.
func groups(all []seen) (sizes []int) {
	for i := 0; i < len(all); i += all[i].merged {
		sizes = append(sizes, all[i].merged)
	}
	return sizes
}

// arrivalTimes returns the arrival times of packets, less the network's own delay.
func arrivalTimes(all []seen) (at []time.Duration) {
	for _, s := range all {
		at = append(at, time.Duration(s.at)-memory.DefaultDelay)
	}
	return at
}
