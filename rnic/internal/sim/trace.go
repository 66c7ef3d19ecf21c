package sim

import (
	"bytes"
	"math/bits"
	"net/netip"
	"slices"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// A Trace is the record of a run: every packet with its deliveries, and noted
// completions and events. Its text is the same for the same seed, byte for
// byte.
type Trace struct {
	sim      *Sim
	entries  []entry
	names    map[objectName]string
	current  []*packet   // of the WriteBatch in progress
	unsent   [][]*packet // by adapter: packets that may yet be sent, or sent again
	inFlight map[inFlightKey][]*packetCopy
}

// entry is a line of the trace: a packet or a note.
type entry struct {
	at     int64
	packet *packet
	dev    *Device
	note   string
}

// A packet is a packet of an adapter, or one that arrived from elsewhere.
type packet struct {
	sentAt int64
	to     netip.AddrPort
	raw    []byte // BTH to ICRC, which is not yet valid
	copies []*packetCopy
}

// A packetCopy is one copy of a packet in flight: normally there is one; none
// if the packet was lost, two if it was duplicated.
type packetCopy struct {
	left    int64
	arrived int64 // 0 if it has not arrived
	damaged bool
	marked  bool   // congestion experienced
	lost    bool   // on arrival
	full    bool   // because the receive buffer was full
	verdict string // why the receiver dropped it, or ""
}

// Record starts a trace, which does not affect the run.
func (s *Sim) Record() *Trace {
	if s.trace == nil {
		s.trace = &Trace{sim: s, names: make(map[objectName]string), inFlight: make(map[inFlightKey][]*packetCopy)}
	}
	return s.trace
}

// An objectName is a queue pair number or a key of an adapter.
type objectName struct {
	dev    *Device
	number uint32
	key    bool
}

// NameQP and NameKey name queue pairs and keys in the trace.
func (t *Trace) NameQP(d *Device, qpn uint32, as string)  { t.names[objectName{d, qpn, false}] = as }
func (t *Trace) NameKey(d *Device, key uint32, as string) { t.names[objectName{d, key, true}] = as }

// Note adds a line for an adapter.
func (t *Trace) Note(d *Device, text string) {
	t.entries = append(t.entries, entry{at: t.sim.net.Now(), dev: d, note: text})
}

// NoteCompletion adds a completion that the application has polled.
func (t *Trace) NoteCompletion(d *Device, wc verbs.WC) { t.Note(d, t.formatCompletion(d, &wc)) }

// Len returns the number of lines.
func (t *Trace) Len() int { return len(t.entries) }

// recordSent records a batch before impair sees it.
func (t *Trace) recordSent(d *Device, b *link.Batch) {
	for len(t.unsent) <= d.index {
		t.unsent = append(t.unsent, nil)
	}
	t.current = t.current[:0]
	for i := range b.Len() {
		to, pkt := b.Packet(i)
		p := &packet{sentAt: t.sim.net.Now(), to: to.Dst, raw: bytes.Clone(pkt)}
		t.current = append(t.current, p)
		t.entries = append(t.entries, entry{at: p.sentAt, packet: p, dev: d})
	}
	t.unsent[d.index] = append(t.unsent[d.index], t.current...)
	t.trimUnsent(d)
}

// maxUnsent is the number of packets kept to identify delayed ones.
const maxUnsent = 4096

func (t *Trace) trimUnsent(d *Device) {
	if n := len(t.unsent[d.index]); n > 2*maxUnsent {
		t.unsent[d.index] = slices.Clone(t.unsent[d.index][n-maxUnsent:])
	}
}

// recordLeft records a sealed batch that impair has sent.
func (t *Trace) recordLeft(d *Device, b *link.Batch) {
	for i := range b.Len() {
		to, pkt := b.Packet(i)
		s := wire.NewICRC(d.Addr(), to.Dst)
		result, _ := s.Check(pkt, b.ID(i))
		f := &packetCopy{left: t.sim.net.Now(), marked: to.TrafficClass&3 == 3, damaged: result == wire.ICRCBad}
		key := inFlightKey{to.Dst, string(pkt)}
		t.inFlight[key] = append(t.inFlight[key], f)
		if p := t.findOrigin(d, to.Dst, pkt, f.damaged); p != nil {
			p.copies = append(p.copies, f)
		}
	}
}

// findOrigin finds the packet of a sent copy: first among those of the current
// batch, then among earlier ones; packets without a copy first. A damaged copy
// belongs to the most similar packet.
func (t *Trace) findOrigin(d *Device, to netip.AddrPort, pkt []byte, damaged bool) *packet {
	if len(t.unsent) <= d.index {
		return nil
	}
	const none = 1 << 20
	var duplicate, similar *packet
	least := none
	for _, list := range [][]*packet{t.current, t.unsent[d.index]} {
		for _, p := range list {
			if p.to != to || len(p.raw) != len(pkt) {
				continue
			}
			switch n := bitDifference(p.raw, pkt); {
			case n > 0:
				if damaged && n < least && n <= maxFlips {
					least, similar = n, p
				}
			case len(p.copies) == 0:
				return p
			default:
				duplicate = p
			}
		}
	}
	if duplicate == nil {
		return similar
	}
	return duplicate
}

// maxFlips is the maximum number of bits of a packet that impair inverts.
const maxFlips = 3

// bitDifference returns the number of bits in which two packets of one length
// differ, up to a few more than maxFlips, without the ICRC and the congestion
// mark.
func bitDifference(a, b []byte) int {
	end := len(a) - wire.ICRCLen
	if bytes.Equal(a[:4], b[:4]) && (a[4]^b[4])&^fecn == 0 && bytes.Equal(a[5:end], b[5:end]) {
		return 0
	}
	n := 0
	for i := 0; i < end && n <= maxFlips; i++ {
		x := a[i] ^ b[i]
		if i == 4 {
			x &^= fecn
		}
		n += bits.OnesCount8(x)
	}
	return n
}

// fecn is the congestion mark in the BTH, byte 4.
const fecn = 0x80

// An inFlightKey is the key of a packet in flight: its receiver and its bytes.
type inFlightKey struct {
	to  netip.AddrPort
	pkt string
}

// recordArrived records a packet that the adapter is about to read.
func (t *Trace) recordArrived(d *Device, from netip.AddrPort, tos uint8, pkt []byte) *packetCopy {
	now := t.sim.net.Now()
	key := inFlightKey{d.Addr(), string(pkt)}
	list := t.inFlight[key]
	if len(list) == 0 { // sent by no adapter, or altered by incoming rules
		f := &packetCopy{left: now, arrived: now, marked: tos&3 == 3}
		p := &packet{sentAt: now, to: d.Addr(), raw: bytes.Clone(pkt), copies: []*packetCopy{f}}
		t.entries = append(t.entries, entry{at: now, packet: p, dev: t.sim.deviceAt(from)})
		return f
	}
	f := list[0]
	if len(list) == 1 {
		delete(t.inFlight, key)
	} else {
		t.inFlight[key] = list[1:]
	}
	f.arrived = now
	return f
}

// markLost records that the adapter's receive buffer is empty: copies that
// should have arrived before are lost.
func (t *Trace) markLost(d *Device) {
	overflow := d.port.Stats().ReceiveOverflow
	full := overflow > d.top.overflow
	d.top.overflow = overflow
	for key, list := range t.inFlight {
		if key.to != d.Addr() {
			continue
		}
		rest := list[:0]
		for _, f := range list {
			if f.left+int64(d.delay) > t.sim.net.Now() {
				rest = append(rest, f)
				continue
			}
			f.lost, f.full = true, full
		}
		if len(rest) == 0 {
			delete(t.inFlight, key)
		} else {
			t.inFlight[key] = rest
		}
	}
}

// deviceAt returns the adapter with this address, or nil.
func (s *Sim) deviceAt(a netip.AddrPort) *Device {
	for _, d := range s.devices {
		if d.Addr() == a {
			return d
		}
	}
	return nil
}
