package acp

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// Region is memory of this rank that has global addresses.
type Region struct {
	p      *Process
	mr     fabric.Memory
	number uint16
	uses   int32 // operations of ours that read or write it
}

// Register gives memory global addresses (acp_register_memory). It is not copied, stays in place and
// alive, and belongs to all ranks until Unregister. Its first byte has to be at a multiple of 8 if atomics
// are to be used on it.
func (p *Process) Register(buf []byte) (*Region, error) {
	if p.isNull() {
		return nil, p.newError("register", "", ErrNull)
	}
	p.mu.Lock()
	defer p.unlockAndNotify()
	r, err := p.memory.registerRegion(p, buf)
	if err != nil {
		return nil, p.newError("register", fmt.Sprintf("%d bytes", len(buf)), err)
	}
	return r, nil
}

// Unregister ends the addresses (acp_unregister_memory). Others that use them still have an
// error. With an operation of this rank under way on the memory it is ErrBusy.
func (r *Region) Unregister() error {
	if r.isNull() {
		return (*Process)(nil).newError("unregister", "", ErrNull)
	}
	r.p.mu.Lock()
	defer r.p.unlockAndNotify()
	if err := r.p.memory.unregisterRegion(r); err != nil {
		return r.p.newError("unregister", r.GA(0).String(), err)
	}
	return nil
}

// GA is the global address of byte off of the region (acp_query_ga).
func (r *Region) GA(off int) GA {
	if r.isNull() {
		return Null
	}
	return protocol.Make(r.p.rank, int(r.number), 0).Add(off)
}

// Bytes is the memory.
func (r *Region) Bytes() []byte {
	if r.isNull() {
		return nil
	}
	return r.mr.Bytes()
}

// LoadUint64 reads the 8 bytes at offset off, a multiple of 8, in the byte order of the machine, so
// that what other ranks put before is seen as well: to wait for them by looking, with Progress in between.
// It panics if they do not lie in the region, as an index of a slice does.
func (r *Region) LoadUint64(off int) uint64 { return r.mr.LoadUint64(off) }

// LoadUint32 is LoadUint64 of 4 bytes.
func (r *Region) LoadUint32(off int) uint32 { return r.mr.LoadUint32(off) }

// Local is the memory at an address of this rank, nil if there is none (acp_query_address).
func (p *Process) Local(ga GA, n int) []byte {
	if p.isNull() {
		return nil
	}
	p.mu.Lock()
	defer p.unlockAndNotify()
	r, err := p.memory.findRegion(p, ga, n)
	if err != nil {
		return nil
	}
	return r.mr.Bytes()[ga.Offset():][:n:n]
}

// Starter memory is region 1. What all ranks have to know of each other begins it, and the
// program's part follows:
//
//	0      flags of Sync
//	512    connection request buffer: crbSlots words
//	2560   the program's
const (
	starterRegion = 1
	flagsOffset   = 0
	crbOffset     = 512
	crbSlots      = 256
	starterOffset = crbOffset + 8*crbSlots
)

// StarterGA is the address of a rank's starter memory (acp_query_starter_ga), which
// every rank knows. It is Null if there is no such rank.
func (p *Process) StarterGA(rank int) GA {
	if !p.hasRank(rank) {
		return Null
	}
	return protocol.Make(rank, starterRegion, starterOffset)
}

// Starter is this rank's starter memory.
func (p *Process) Starter() []byte {
	if p.isNull() {
		return nil
	}
	return p.memory.starter.mr.Bytes()[starterOffset:]
}

// LoadStarter is Region.LoadUint64 of starter memory.
func (p *Process) LoadStarter(off int) uint64 {
	return p.memory.starter.LoadUint64(starterOffset + off)
}

// memory is what this rank has registered: the regions, and the directory of them that other
// ranks read.
type memory struct {
	directory   fabric.Memory // entries by number
	regions     []*Region     // by number; as long as the highest
	lastNumber  int           // that was given away
	liveRegions int
	starter     *Region
	readBuf     readBuffer
}

func (m *memory) init(p *Process) (err error) {
	if m.directory, err = p.net.Register(make([]byte, protocol.MaxRegions*protocol.EntrySize), true); err != nil {
		return err
	}
	m.starter, err = m.registerRegion(p, make([]byte, starterOffset+p.o.Starter)) // the first: it is number 1
	if err != nil {
		return err
	}
	return m.readBuf.init(p.net)
}

// registerRegion finds a number, the one that was not in use for the longest time, so that addresses of what is no more do not soon mean something else.
func (m *memory) registerRegion(p *Process, buf []byte) (*Region, error) {
	switch {
	case p.closed:
		return nil, ErrClosed
	case len(buf) == 0 || uint64(len(buf)) > protocol.MaxLength:
		return nil, fmt.Errorf("%w: a region has 1 to 2^%d bytes", ErrLength, protocol.OffsetBits)
	case m.liveRegions == protocol.MaxRegions-1:
		return nil, fmt.Errorf("%w: a rank has %d regions at most", verbs.ErrLimit, protocol.MaxRegions-1)
	}
	mr, err := p.net.Register(buf, true)
	if err != nil {
		return nil, err
	}
	number := m.lastNumber%(protocol.MaxRegions-1) + 1
	for number < len(m.regions) && m.regions[number] != nil {
		number = number%(protocol.MaxRegions-1) + 1
	}
	for len(m.regions) <= number {
		m.regions = append(m.regions, nil)
	}
	r := &Region{p: p, mr: mr, number: uint16(number)}
	m.regions[number], m.lastNumber = r, number
	m.liveRegions++
	m.storeEntry(number, protocol.Entry{Addr: mr.Addr(), Length: uint64(len(buf)), RKey: mr.RKey()})
	return r, nil
}

// storeEntry writes an entry of the directory, which others may read meanwhile.
func (m *memory) storeEntry(number int, e protocol.Entry) {
	for i, w := range e.EncodeWords() {
		atomic.StoreUint64(wordPtr(m.directory.Bytes(), number*protocol.EntrySize+8*i), w)
	}
}

func (m *memory) unregisterRegion(r *Region) error {
	switch {
	case m.regions[r.number] != r:
		return ErrRegion
	case r == m.starter:
		return ErrBusy
	case r.uses > 0:
		return fmt.Errorf("%w: %d are under way; complete them first", ErrBusy, r.uses)
	}
	if err := r.mr.Dereg(); err != nil {
		return err
	}
	m.storeEntry(int(r.number), protocol.Entry{})
	m.regions[r.number] = nil
	m.liveRegions--
	return nil
}

// findRegion returns the region of n bytes at an address of this rank.
func (m *memory) findRegion(p *Process, ga GA, n int) (*Region, error) {
	if ga.Rank() != p.rank {
		return nil, ErrRank
	}
	number := ga.Region()
	if number == 0 || number >= len(m.regions) || m.regions[number] == nil {
		return nil, ErrRegion
	}
	r := m.regions[number]
	if uint64(n) > uint64(r.mr.Len()) || ga.Offset() > uint64(r.mr.Len()-n) {
		return nil, ErrRange
	}
	return r, nil
}

// encodeCard is what other ranks have to know to find everything else: address and key of the directory, and the
// byte order of words.
func (m *memory) encodeCard() []byte {
	b := binary.BigEndian.AppendUint64(nil, m.directory.Addr())
	b = binary.BigEndian.AppendUint32(b, m.directory.RKey())
	return binary.NativeEndian.AppendUint32(b, byteOrder)
}

// byteOrder tells by its bytes how a rank lays out words.
const byteOrder = 0x01020304

// bigEndian is how this machine does.
var bigEndian = binary.NativeEndian.Uint16([]byte{0, 1}) == 1

// wordPtr is 8 bytes of memory as what sync/atomic takes.
func wordPtr(b []byte, off int) *uint64 { return (*uint64)(unsafe.Pointer(&b[off : off+8][0])) }

// readBuffer is memory that entries of directories, and control blocks of channels, are read into.
type readBuffer struct {
	mr      fabric.Memory
	free    []int
	waiting []*entryLookup // for one that is free
}

// readSlots is how many are read at a time.
const readSlots = 64

func (l *readBuffer) init(net fabric.Net) (err error) {
	l.mr, err = net.Register(make([]byte, readSlots*protocol.EntrySize), false)
	for i := range readSlots {
		l.free = append(l.free, i)
	}
	return err
}

// allocSlot returns a place. There has to be one.
func (l *readBuffer) allocSlot() (slot int) {
	last := len(l.free) - 1
	slot = l.free[last]
	l.free = l.free[:last]
	return slot
}

// slotWords is what has come to a place.
func (l *readBuffer) slotWords(slot int) (w [protocol.EntryWords]uint64) {
	for i := range w {
		w[i] = binary.NativeEndian.Uint64(l.mr.Bytes()[slot*protocol.EntrySize+8*i:])
	}
	return w
}

// freeReadSlot gives a place back, to a lookup that waits for one.
func (p *Process) freeReadSlot(slot int) {
	l := &p.memory.readBuf
	l.free = append(l.free, slot)
	if n := len(l.waiting); n > 0 {
		next := l.waiting[n-1]
		l.waiting = l.waiting[:n-1]
		p.readEntry(next)
	}
}
