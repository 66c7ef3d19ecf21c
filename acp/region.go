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
	uses   int32 // operations of this rank that use it
}

// Register gives buf global addresses (acp_register_memory). The memory is not copied and stays alive, and
// all ranks may access it until Close. For atomics, its first byte must be aligned to 8 bytes.
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

// Close invalidates the addresses (acp_unregister_memory). Later accesses of other ranks fail. If
// operations of this rank still use the region, it returns ErrBusy. On a closed region it returns nil.
func (r *Region) Close() error {
	if r.isNull() {
		return (*Process)(nil).newError("close region", "", ErrNull)
	}
	r.p.mu.Lock()
	defer r.p.unlockAndNotify()
	if r.p.memory.regions[r.number] != r {
		return nil
	}
	if err := r.p.memory.unregisterRegion(r); err != nil {
		return r.p.newError("close region", r.GA(0).String(), err)
	}
	return nil
}

// GA returns the global address of byte off of the region (acp_query_ga).
func (r *Region) GA(off int) GA {
	if r.isNull() {
		return Null
	}
	return GA(protocol.Make(r.p.rank, int(r.number), 0).Add(off))
}

// Bytes returns the memory.
func (r *Region) Bytes() []byte {
	if r.isNull() {
		return nil
	}
	return r.mr.Bytes()
}

// LoadUint64 atomically reads the 8 bytes at offset off, a multiple of 8, in native byte order. The bytes
// that other ranks put before a word are visible when the word is, so a program can poll for them, calling
// Progress in between. It panics if off is out of range.
func (r *Region) LoadUint64(off int) uint64 { return r.mr.LoadUint64(off) }

// LoadUint32 is LoadUint64 for 4 bytes.
func (r *Region) LoadUint32(off int) uint32 { return r.mr.LoadUint32(off) }

// Local returns n bytes at an address of this rank, or nil if no region contains them (acp_query_address).
func (p *Process) Local(ga GA, n int) []byte {
	if p.isNull() {
		return nil
	}
	p.mu.Lock()
	defer p.unlockAndNotify()
	at := protocol.GA(ga)
	r, err := p.memory.findRegion(p, at, n)
	if err != nil {
		return nil
	}
	return r.mr.Bytes()[at.Offset():][:n:n]
}

// Starter memory is region 1. It begins with the words that all ranks access, and the program's part follows:
//
//	0      flags of Sync
//	512    connection request buffer (CRB): crbSlots words
//	2560   the program's
const (
	starterRegion = 1
	flagsOffset   = 0
	crbOffset     = 512
	crbSlots      = 256
	starterOffset = crbOffset + 8*crbSlots
)

// StarterGA returns the address of a rank's starter memory (acp_query_starter_ga), which is the same function
// of the rank at all ranks. It returns Null if the rank is out of range.
func (p *Process) StarterGA(rank int) GA {
	if !p.hasRank(rank) {
		return Null
	}
	return GA(protocol.Make(rank, starterRegion, starterOffset))
}

// Starter returns this rank's starter memory.
func (p *Process) Starter() []byte {
	if p.isNull() {
		return nil
	}
	return p.memory.starter.mr.Bytes()[starterOffset:]
}

// LoadStarter is Region.LoadUint64 for starter memory.
func (p *Process) LoadStarter(off int) uint64 {
	return p.memory.starter.LoadUint64(starterOffset + off)
}

// memory holds the registered regions of this rank and the directory that the other ranks read.
type memory struct {
	directory   fabric.Memory // by region number
	regions     []*Region     // by number, up to the highest in use
	lastNumber  int           // the number assigned last
	liveRegions int
	starter     *Region
	readBuf     readBuffer
}

func (m *memory) init(p *Process) (err error) {
	if m.directory, err = p.net.Register(make([]byte, protocol.MaxRegions*protocol.EntrySize), true); err != nil {
		return err
	}
	m.starter, err = m.registerRegion(p, make([]byte, starterOffset+p.o.Starter)) // the first region, so its number is 1
	if err != nil {
		return err
	}
	return m.readBuf.init(p.net)
}

// registerRegion registers buf under the number that has been unused for the longest time, so that stale
// addresses stay invalid for long.
func (m *memory) registerRegion(p *Process, buf []byte) (*Region, error) {
	switch {
	case p.closed:
		return nil, ErrClosed
	case len(buf) == 0 || uint64(len(buf)) > protocol.MaxLength:
		return nil, fmt.Errorf("%w: want 1 to 2^%d bytes", ErrLength, protocol.OffsetBits)
	case m.liveRegions == protocol.MaxRegions-1:
		return nil, fmt.Errorf("%w: at most %d regions", verbs.ErrLimit, protocol.MaxRegions-1)
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

// storeEntry writes a directory entry, word by word, because other ranks may read it concurrently.
func (m *memory) storeEntry(number int, e protocol.Entry) {
	for i, w := range e.EncodeWords() {
		atomic.StoreUint64(wordPtr(m.directory.Bytes(), number*protocol.EntrySize+8*i), w)
	}
}

// unregisterRegion deregisters r and clears its directory entry. It returns ErrBusy if operations of this
// rank use r.
func (m *memory) unregisterRegion(r *Region) error {
	switch {
	case m.regions[r.number] != r:
		return ErrRegion
	case r == m.starter:
		return ErrBusy
	case r.uses > 0:
		return fmt.Errorf("%w: %d outstanding; complete them first", ErrBusy, r.uses)
	}
	if err := r.mr.Close(); err != nil {
		return err
	}
	m.storeEntry(int(r.number), protocol.Entry{})
	m.regions[r.number] = nil
	m.liveRegions--
	return nil
}

// findRegion returns the region that contains n bytes at an address of this rank.
func (m *memory) findRegion(p *Process, ga protocol.GA, n int) (*Region, error) {
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

// encodeCard returns the card by which other ranks reach this one: address and key of its directory, and its
// byte order.
func (m *memory) encodeCard() []byte {
	b := binary.BigEndian.AppendUint64(nil, m.directory.Addr())
	b = binary.BigEndian.AppendUint32(b, m.directory.RKey())
	return binary.NativeEndian.AppendUint32(b, byteOrder)
}

// byteOrder is a word whose bytes reveal a rank's byte order.
const byteOrder = 0x01020304

// bigEndian reports whether this machine is big-endian.
var bigEndian = binary.NativeEndian.Uint16([]byte{0, 1}) == 1

// wordPtr returns a pointer for sync/atomic to the 8 bytes at off.
func wordPtr(b []byte, off int) *uint64 { return (*uint64)(unsafe.Pointer(&b[off : off+8][0])) }

// readBuffer is registered memory that directory entries and control blocks are read into.
type readBuffer struct {
	mr      fabric.Memory
	free    []int
	waiting []*entryLookup // lookups that wait for a free slot
}

// readSlots is the maximum number of concurrent reads.
const readSlots = 64

func (b *readBuffer) init(net fabric.Net) (err error) {
	b.mr, err = net.Register(make([]byte, readSlots*protocol.EntrySize), false)
	for i := range readSlots {
		b.free = append(b.free, i)
	}
	return err
}

// allocSlot returns a free slot. The caller checks that there is one.
func (b *readBuffer) allocSlot() (slot int) {
	last := len(b.free) - 1
	slot = b.free[last]
	b.free = b.free[:last]
	return slot
}

// slotWords returns the words that were read into a slot.
func (b *readBuffer) slotWords(slot int) (w [protocol.EntryWords]uint64) {
	for i := range w {
		w[i] = binary.NativeEndian.Uint64(b.mr.Bytes()[slot*protocol.EntrySize+8*i:])
	}
	return w
}

// freeReadSlot returns a slot to the free list, and starts a waiting lookup.
func (p *Process) freeReadSlot(slot int) {
	l := &p.memory.readBuf
	l.free = append(l.free, slot)
	if n := len(l.waiting); n > 0 {
		next := l.waiting[n-1]
		l.waiting = l.waiting[:n-1]
		p.readEntry(next)
	}
}

// GA is a global address of a byte of registered memory of any rank (acp_ga_t). It has the same meaning at
// every rank, so every rank may use, store and send it. From the top it contains the rank in 20 bits, the
// region in 12 and the offset in the region in 32.
type GA uint64

// Null is the null address (ACP_GA_NULL).
const Null = GA(protocol.Null)

// Rank returns the rank that owns the memory (acp_query_rank).
func (g GA) Rank() int { return protocol.GA(g).Rank() }

// Add returns the address n bytes after g, or before it if n is negative. It returns Null if the result is
// not an address.
func (g GA) Add(n int) GA { return GA(protocol.GA(g).Add(n)) }

// String returns the parts, for example "rank 3, region 2 + 0x40".
func (g GA) String() string { return protocol.GA(g).String() }
