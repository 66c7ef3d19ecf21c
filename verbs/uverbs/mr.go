//go:build linux

package uverbs

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/verbs"
)

// A memoryRegion is a verbs.MR. The device refers to it until it is closed, because the collector
// must not reuse memory that the kernel may write.
type memoryRegion struct {
	handleGuard
	pd         *protectionDomain
	memory     []byte
	iova       uint64
	lkey, rkey uint32
	access     verbs.AccessFlags
}

// RegMR implements verbs.PD.
func (pd *protectionDomain) RegMR(b []byte, access verbs.AccessFlags) (verbs.MR, error) {
	iova := uint64(0)
	if access&verbs.AccessZeroBased == 0 {
		iova = addressOf(b)
	}
	return pd.registerMR(b, iova, access)
}

// RegMRAt implements verbs.PD. The kernel requires that iova and the address of the memory have the
// same offset in a page.
func (pd *protectionDomain) RegMRAt(b []byte, iova uint64, access verbs.AccessFlags) (verbs.MR, error) {
	if access&verbs.AccessZeroBased != 0 {
		return nil, invalidError("register MR", "", "RegMRAt has its own address: AccessZeroBased does not apply")
	}
	return pd.registerMR(b, iova, access)
}

// addressOf returns the address of the first byte, also if len(b) is 0.
func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

func (pd *protectionDomain) registerMR(b []byte, iova uint64, access verbs.AccessFlags) (verbs.MR, error) {
	const op = "register MR"
	if err := pd.checkOpen(pd.dev, op, pd); err != nil {
		return nil, err
	}
	const flush = verbs.AccessFlushGlobal | verbs.AccessFlushPersistent
	page := uint64(os.Getpagesize())
	switch {
	case len(b) == 0:
		return nil, invalidError(op, "", "empty buffer")
	case access&(verbs.AccessRemoteWrite|verbs.AccessRemoteAtomic) != 0 && access&verbs.AccessLocalWrite == 0:
		return nil, invalidError(op, "", "%v needs LOCAL_WRITE", access)
	case access&^(verbs.AccessLocalWrite|verbs.AccessRemote|verbs.AccessMWBind|verbs.AccessZeroBased|verbs.AccessOptional) != 0:
		if access&(verbs.AccessOnDemand|flush) != 0 {
			return nil, &verbs.OpError{Op: op, Err: verbs.ErrUnsupported, Detail: fmt.Sprintf("access %v: rxe pins memory and has no FLUSH", access)}
		}
		return nil, invalidError(op, "", "access %v has unknown flags", access)
	case iova%page != addressOf(b)%page:
		return nil, invalidError(op, "", "first address %#x: the kernel wants offset %#x in a page of %d bytes, that of the memory", iova, addressOf(b)%page, page)
	}
	body := registerMR{start: addressOf(b), length: uint64(len(b)), iova: iova, pd: pd.handle,
		access: uint32(access &^ (verbs.AccessZeroBased | verbs.AccessOptional))}
	var r registerMRResponse
	if err := execute(pd.dev.file, cmdRegMR, &body, &r); err != nil {
		return nil, registerError(op, len(b), err)
	}
	m := &memoryRegion{pd: pd, memory: b, iova: iova, lkey: r.lkey, access: access &^ verbs.AccessOptional, handleGuard: handleGuard{handle: r.handle}}
	if access&verbs.AccessRemote != 0 {
		m.rkey = r.rkey
	}
	pd.dev.keepRegion(m)
	return m, nil
}

// registerError returns the error of a registration. ENOMEM almost always is the limit of locked
// memory.
func registerError(op string, length int, err error) error {
	err = opError(op, "", err)
	var e *verbs.OpError
	if !errors.Is(err, unix.ENOMEM) || !errors.As(err, &e) {
		return err
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) != nil || limit.Cur == unix.RLIM_INFINITY {
		return err
	}
	e.Detail = fmt.Sprintf("%d bytes to pin, and the limit of locked memory is %d bytes for the process; raise it with \"ulimit -l\" (RLIMIT_MEMLOCK)", length, limit.Cur)
	return e
}

// String returns the name of the region for errors.
func (m *memoryRegion) String() string { return fmt.Sprintf("MR lkey %#x", m.lkey) }

// The methods of verbs.MR that read its fields.
func (m *memoryRegion) Addr() uint64              { return m.iova }
func (m *memoryRegion) Len() int                  { return len(m.memory) }
func (m *memoryRegion) Bytes() []byte             { return m.memory }
func (m *memoryRegion) LKey() uint32              { return m.lkey }
func (m *memoryRegion) RKey() uint32              { return m.rkey }
func (m *memoryRegion) Access() verbs.AccessFlags { return m.access }

// SGE implements verbs.MR.
func (m *memoryRegion) SGE(off, n int) verbs.SGE {
	return verbs.SGE{Addr: m.iova + uint64(off), Length: uint32(n), LKey: m.lkey}
}

// LoadUint64 implements verbs.MR.
func (m *memoryRegion) LoadUint64(off int) uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(unsafe.SliceData(m.memory[off : off+8]))))
}

// LoadUint32 implements verbs.MR.
func (m *memoryRegion) LoadUint32(off int) uint32 {
	return atomic.LoadUint32((*uint32)(unsafe.Pointer(unsafe.SliceData(m.memory[off : off+4]))))
}

// Close implements verbs.MR.
func (m *memoryRegion) Close() error {
	return m.closeObject(m.pd.dev, m, func() error {
		err := execute(m.pd.dev.file, cmdDeregMR, &handleBody{m.handle}, &none{})
		if errors.Is(err, unix.EINVAL) { // rxe's error while a window is bound to the region
			return fmt.Errorf("%w: kernel: %w", verbs.ErrBusy, err)
		}
		if err == nil {
			m.pd.dev.dropRegion(m)
		}
		return err
	})
}

// A memoryWindow is a verbs.MW.
type memoryWindow struct {
	handleGuard
	pd   *protectionDomain
	rkey atomic.Uint32 // changed by posting a bind
}

// Types of memory windows (enum ib_mw_type).
const (
	windowType1 = 1
	windowType2 = 2
)

// AllocMW implements verbs.PD.
func (pd *protectionDomain) AllocMW() (verbs.MW, error) { return pd.allocMW(windowType2) }

// AllocMWType1 implements verbs.PD.
func (pd *protectionDomain) AllocMWType1() (verbs.MW, error) { return pd.allocMW(windowType1) }

func (pd *protectionDomain) allocMW(kind uint8) (verbs.MW, error) {
	const op = "allocate MW"
	if err := pd.checkOpen(pd.dev, op, pd); err != nil {
		return nil, err
	}
	var r allocMWResponse
	if err := execute(pd.dev.file, cmdAllocMW, &allocMW{pd: pd.handle, kind: kind}, &r); err != nil {
		return nil, opError(op, "", err)
	}
	w := &memoryWindow{pd: pd, handleGuard: handleGuard{handle: r.handle}}
	w.rkey.Store(r.rkey)
	return w, nil
}

// String returns the name of the window for errors.
func (w *memoryWindow) String() string { return fmt.Sprintf("MW rkey %#x", w.RKey()) }

// RKey implements verbs.MW.
func (w *memoryWindow) RKey() uint32 { return w.rkey.Load() }

// Close implements verbs.MW.
func (w *memoryWindow) Close() error {
	return w.closeObject(w.pd.dev, w, func() error {
		return execute(w.pd.dev.file, cmdDeallocMW, &handleBody{w.handle}, &none{})
	})
}
