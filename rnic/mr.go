package rnic

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/softrnic/softrnic/internal/pages"
	"github.com/softrnic/softrnic/verbs"
)

// A memoryRegion is a registered memory region. It keeps its buffer alive.
type memoryRegion struct {
	region

	mu      sync.Mutex
	closed  bool
	windows int // bound to the region
}

var _ verbs.MR = (*memoryRegion)(nil)

const knownAccess = verbs.AccessLocalWrite | verbs.AccessRemote | verbs.AccessMWBind | verbs.AccessZeroBased |
	verbs.AccessOnDemand | accessFlush

const accessFlush = verbs.AccessFlushGlobal | verbs.AccessFlushPersistent

// RegMR implements verbs.PD. buf remains the caller's: it is not copied, and
// the adapter accesses it as work requests and peers request, until Close. Both
// keys are new with every registration.
//
// Memory that the process cannot read, or with AccessLocalWrite cannot write,
// is refused with verbs.ErrFault (ibv_reg_mr(3): EFAULT). Systems other than
// Linux do not report this: there, as with memory that is unmapped or protected
// later, the work requests that access it fail.
func (pd *protectionDomain) RegMR(buf []byte, access verbs.AccessFlags) (verbs.MR, error) {
	if access&verbs.AccessZeroBased != 0 {
		return pd.registerAt(buf, 0, access)
	}
	return pd.registerAt(buf, realAddr(buf), access)
}

// RegMRAt implements verbs.PD.
func (pd *protectionDomain) RegMRAt(buf []byte, iova uint64, access verbs.AccessFlags) (verbs.MR, error) {
	if access&verbs.AccessZeroBased != 0 || iova > math.MaxUint64-uint64(len(buf)) {
		return nil, &verbs.OpError{Op: opRegister, Err: verbs.ErrInvalid,
			Detail: fmt.Sprintf("address 0x%x and %d bytes with %v; want no AccessZeroBased and no overflow", iova, len(buf), access)}
	}
	return pd.registerAt(buf, iova, access)
}

const opRegister = "register MR"

// registerAt registers buf with the address that work requests name.
func (pd *protectionDomain) registerAt(buf []byte, base uint64, access verbs.AccessFlags) (verbs.MR, error) {
	const op = opRegister
	access &^= verbs.AccessOptional
	if err := checkRegion(buf, access, pd.host.QueryDevice().MaxMRSize); err != nil {
		err.Op = op
		return nil, err
	}
	if err := checkMemory(buf, access); err != nil {
		err.Op = op
		return nil, err
	}
	if err := pd.addRef(kindMR, op); err != nil {
		return nil, err
	}
	mr := &memoryRegion{region: region{pd: pd, access: access, base: base, mem: buf[:len(buf):len(buf)]}}
	if !pd.keys.insert(&mr.region) {
		pd.release(kindMR)
		return nil, &verbs.OpError{Op: op, Err: verbs.ErrNoMemory, Detail: "all keys are in use; close regions"}
	}
	return mr, nil
}

// checkMemory checks that the process can access buf as a registration with access requires.
func checkMemory(buf []byte, access verbs.AccessFlags) *verbs.OpError {
	if access&verbs.AccessOnDemand != 0 {
		return nil
	}
	if err := pages.CheckAccess(buf, access&verbs.AccessLocalWrite != 0); err != nil {
		return &verbs.OpError{Err: verbs.ErrFault, Detail: err.Error()}
	}
	return nil
}

func checkRegion(buf []byte, access verbs.AccessFlags, maxSize uint64) *verbs.OpError {
	invalid := func(detail string) *verbs.OpError {
		return &verbs.OpError{Err: verbs.ErrInvalid, Detail: detail}
	}
	switch {
	case len(buf) == 0:
		return invalid("the buffer is empty; register at least one byte")
	case uint64(len(buf)) > maxSize:
		return &verbs.OpError{Err: verbs.ErrLimit,
			Detail: fmt.Sprintf("%d bytes, the limit is %d; register parts", len(buf), maxSize)}
	case access&^knownAccess != 0:
		return invalid(fmt.Sprintf("unknown access flags in %v", access))
	case access&(verbs.AccessRemoteWrite|verbs.AccessRemoteAtomic) != 0 && access&verbs.AccessLocalWrite == 0:
		return invalid("remote write and remote atomic require AccessLocalWrite")
	case access&verbs.AccessFlushPersistent != 0:
		return invalid("AccessFlushPersistent: the memory is not persistent")
	case access&verbs.AccessZeroBased != 0 && access&verbs.AccessRemoteAtomic != 0 && realAddr(buf)%8 != 0:
		return invalid(fmt.Sprintf("the buffer starts at 0x%x; zero-based memory for atomics must start at a multiple of 8", realAddr(buf)))
	}
	return nil
}

// Addr returns the first address as work requests name it: the virtual address,
// 0 with AccessZeroBased, or that of RegMRAt.
func (mr *memoryRegion) Addr() uint64 { return mr.base }

// Len returns the length in bytes.
func (mr *memoryRegion) Len() int { return len(mr.mem) }

// Bytes returns the registered memory itself.
func (mr *memoryRegion) Bytes() []byte { return mr.mem }

// LKey returns the key for local use.
func (mr *memoryRegion) LKey() uint32 { return mr.key }

// RKey returns the key for remote use, or 0 if no remote access was granted.
func (mr *memoryRegion) RKey() uint32 {
	if mr.access&(verbs.AccessRemote|accessFlush) == 0 {
		return 0
	}
	return mr.key
}

// Access returns the access flags of the registration.
func (mr *memoryRegion) Access() verbs.AccessFlags { return mr.access }

// SGE returns a scatter/gather element of n bytes at offset off. It is not
// validated: a range outside the region makes the work request fail.
func (mr *memoryRegion) SGE(off, n int) verbs.SGE {
	length := uint32(math.MaxUint32)
	if n >= 0 && uint64(n) < math.MaxUint32 {
		length = uint32(n)
	}
	return verbs.SGE{Addr: mr.base + uint64(off), Length: length, LKey: mr.key}
}

// LoadUint64 reads the 8 bytes at offset off in host byte order, with acquire
// semantics. It panics if off is out of range, or if offset or address is no
// multiple of 8.
func (mr *memoryRegion) LoadUint64(off int) uint64 {
	return atomic.LoadUint64((*uint64)(mr.wordPointer(off, 8)))
}

// LoadUint32 is LoadUint64 for 4 bytes.
func (mr *memoryRegion) LoadUint32(off int) uint32 {
	return atomic.LoadUint32((*uint32)(mr.wordPointer(off, 4)))
}

func (mr *memoryRegion) wordPointer(off, size int) unsafe.Pointer {
	if off < 0 || off > len(mr.mem)-size {
		panic(fmt.Sprintf("rnic: load of %d bytes at offset %d of a region of %d bytes", size, off, len(mr.mem)))
	}
	p := unsafe.Pointer(&mr.mem[off])
	if (off|int(uintptr(p)))%size != 0 {
		panic(fmt.Sprintf("rnic: load of %d bytes at offset %d, address %p: both must be multiples of %d", size, off, p, size))
	}
	return p
}

// Close invalidates both keys. When it returns nil, the adapter no longer
// accesses the memory. It returns ErrBusy while windows are bound to the
// region. Close is idempotent.
func (mr *memoryRegion) Close() error {
	first, err := mr.close()
	if err != nil {
		return err
	}
	mr.pd.host.quiesceShards() // also for a second, concurrent call
	if first {
		mr.pd.release(kindMR)
	}
	return nil
}

// close removes the keys and reports whether it is the first call.
func (mr *memoryRegion) close() (first bool, err error) {
	mr.mu.Lock()
	defer mr.mu.Unlock()
	switch {
	case mr.closed:
		return false, nil
	case mr.windows > 0 && !mr.pd.host.isClosed():
		return false, &verbs.OpError{Op: "close MR", Object: fmt.Sprintf("MR lkey 0x%x", mr.key), Err: verbs.ErrBusy,
			Detail: fmt.Sprintf("memory windows bound to it: %d; invalidate or close them", mr.windows)}
	}
	mr.closed = true
	mr.pd.keys.remove(&mr.region)
	return true, nil
}

// addWindow counts a window bound to the region, or returns false if the region
// was deregistered.
func (mr *memoryRegion) addWindow() bool {
	mr.mu.Lock()
	defer mr.mu.Unlock()
	if !mr.closed {
		mr.windows++
	}
	return !mr.closed
}

// removeWindow undoes addWindow.
func (mr *memoryRegion) removeWindow() {
	mr.mu.Lock()
	defer mr.mu.Unlock()
	mr.windows--
}
