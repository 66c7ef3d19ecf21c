package capture

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/internal/link"
)

// Direction is the way a packet goes, seen from the tap.
type Direction uint8

// Directions.
const (
	In Direction = iota
	Out
)

// A Packet is a packet passed to a Recorder.
type Packet struct {
	Time         int64 // nanoseconds since 1970
	Direction    Direction
	Src, Dst     netip.AddrPort
	TrafficClass uint8
	HopLimit     uint8  // 0 if unknown, or the link's default
	FlowLabel    uint32 // of IPv6; 0 if unknown, or the system's choice
	ID           uint16 // IPv4 identification
	GuessedID    bool   // the link does not show it: ID is the probable one
	Data         []byte // BTH to ICRC
}

// localAddr returns the address of the tap that saw the packet.
func (p *Packet) localAddr() netip.AddrPort {
	if p.Direction == Out {
		return p.Src
	}
	return p.Dst
}

// A Recorder records packets from taps, such as *File.
type Recorder interface {
	// Record takes a packet, which stays the caller's. It is called in the data
	// path, by several goroutines, and must not wait.
	Record(p *Packet)
}

// inner is the wrapped link, to which most calls are passed.
type inner = link.Conn

// Tap is a link.Conn that shows its packets to Recorders. Without Recorders it
// costs one atomic load per batch.
type Tap struct {
	inner
	clock     func() int64
	recorders atomic.Pointer[[]Recorder] // nil without any
	change    sync.Mutex                 // held to replace recorders

	out, in Packet // the writer's and the reader's, so that none is allocated
}

// NewTap returns a tap on a link, which the tap owns from then on. The clock
// returns nanoseconds since 1970; nil is real time.
func NewTap(conn link.Conn, clock func() int64) *Tap {
	if clock == nil {
		clock = func() int64 { return time.Now().UnixNano() }
	}
	return &Tap{inner: conn, clock: clock}
}

// Unwrap returns the link inside.
func (t *Tap) Unwrap() link.Conn { return t.inner }

// Add passes all further packets to r.
func (t *Tap) Add(r Recorder) {
	t.change.Lock()
	defer t.change.Unlock()
	t.setRecorders(append(t.cloneRecorders(), r))
}

// Remove undoes Add. Packets of calls in progress may still be passed to r.
func (t *Tap) Remove(r Recorder) {
	t.change.Lock()
	defer t.change.Unlock()
	t.setRecorders(slices.DeleteFunc(t.cloneRecorders(), func(have Recorder) bool { return have == r }))
}

// cloneRecorders returns a copy of the recorders.
func (t *Tap) cloneRecorders() []Recorder {
	if list := t.recorders.Load(); list != nil {
		return slices.Clone(*list)
	}
	return nil
}

func (t *Tap) setRecorders(list []Recorder) {
	if len(list) == 0 {
		t.recorders.Store(nil)
		return
	}
	t.recorders.Store(&list)
}

// WriteBatch implements link.Conn. Packets are recorded before they are sent,
// so that a reply is never recorded before its request.
func (t *Tap) WriteBatch(b *link.Batch) error {
	list := t.recorders.Load()
	if list == nil {
		return t.inner.WriteBatch(b)
	}
	b.Seal(t.LocalAddr(), t.Caps().GSO)
	p := &t.out
	p.Time, p.Direction, p.Src = t.clock(), Out, t.LocalAddr()
	for i := range b.Len() {
		to, pkt := b.Packet(i)
		p.Dst, p.TrafficClass, p.ID, p.Data = to.Dst, to.TrafficClass, b.ID(i), pkt
		p.HopLimit, p.FlowLabel = cmp.Or(to.HopLimit, link.HopLimit), to.FlowLabel
		p.recordTo(*list)
	}
	return t.inner.WriteBatch(b)
}

// ReadBatch implements link.Conn.
func (t *Tap) ReadBatch(r *link.Datagrams) (int, error) {
	n, err := t.inner.ReadBatch(r)
	list := t.recorders.Load()
	if list == nil || n == 0 {
		return n, err
	}
	p := &t.in
	p.Time, p.Direction, p.Dst = t.clock(), In, t.LocalAddr()
	p.GuessedID = !t.Caps().ExactID
	for i := range r.Msgs() {
		d := &r.Msgs()[i]
		d.Seal(p.Dst)
		p.Src, p.TrafficClass, p.HopLimit, p.FlowLabel = d.Src, d.TOS, d.HopLimit, d.FlowLabel
		for i := range d.Count() {
			p.ID, p.Data = d.ID+uint16(i), d.Packet(i)
			p.recordTo(*list)
		}
	}
	return n, err
}

func (p *Packet) recordTo(list []Recorder) {
	for _, r := range list {
		r.Record(p)
	}
	p.Data = nil
}
