package rnic

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/verbs"
)

// A memoryWindow is a memory window: bound to a range of a region and, if it is of
// type 2B, to one queue pair. The index of its key is constant; the caller chooses
// the variant at each bind.
type memoryWindow struct {
	pd    *protectionDomain
	type1 bool

	mu      sync.Mutex // taken before those of MR, key table and PD
	closed  bool
	current atomic.Pointer[region] // target of the key; changed under mu
}

var _ verbs.MW = (*memoryWindow)(nil)

// AllocMW implements verbs.PD. The window is unbound.
func (pd *protectionDomain) AllocMW() (verbs.MW, error) { return pd.allocMW(false) }

// AllocMWType1 implements verbs.PD. The window is unbound. Its device must have
// one shard: any queue pair may be accessing its memory when another one binds it
// again, and with one lock neither does so in the middle of the other.
func (pd *protectionDomain) AllocMWType1() (verbs.MW, error) {
	if n := pd.host.shardCount(); n > 1 {
		return nil, &verbs.OpError{Op: opAllocMW, Err: verbs.ErrUnsupported,
			Detail: fmt.Sprintf("type 1 with Options.Shards %d; set it to 1, or use type 2", n)}
	}
	return pd.allocMW(true)
}

const opAllocMW = "allocate MW"

func (pd *protectionDomain) allocMW(type1 bool) (verbs.MW, error) {
	const op = opAllocMW
	if err := pd.addRef(kindMW, op); err != nil {
		return nil, err
	}
	w := &memoryWindow{pd: pd, type1: type1}
	r := &region{pd: pd, win: w}
	if !pd.keys.insert(r) {
		pd.release(kindMW)
		return nil, &verbs.OpError{Op: op, Err: verbs.ErrNoMemory, Detail: "all keys are in use; close windows"}
	}
	w.current.Store(r)
	return w, nil
}

// RKey returns the key of the last bind, or of the allocation. The next bind
// must use another low byte (verbs.IncRKey).
func (w *memoryWindow) RKey() uint32 { return w.current.Load().key }

// Close frees the window, also while it is bound. When it returns, no peer
// can access memory through it. Close is idempotent and returns nil.
func (w *memoryWindow) Close() error {
	first := w.close()
	w.pd.host.quiesceShards() // also for a second, concurrent call
	if first {
		w.pd.release(kindMW)
	}
	return nil
}

// close removes the key and reports whether it is the first call.
func (w *memoryWindow) close() (first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.closed = true
	w.unbind()
	w.pd.keys.remove(w.current.Load())
	return true
}

// Bind implements qp.Memory. The checks are those of Linux's rxe (rxe_mw.c): for
// windows of type 2 an unbound window; a key with another variant, a region
// with AccessMWBind and, for a writable window, AccessLocalWrite, and a range
// inside it. Beyond rxe, the region of a window of type 2 may be zero-based.
func (m *pdMemory) Bind(b *verbs.BindMW, qpn uint32) qp.Fault {
	pd := (*protectionDomain)(m)
	w, _ := b.MW.(*memoryWindow)
	mr, _ := b.MR.(*memoryRegion)
	if w == nil || w.pd != pd || (mr == nil || mr.pd != pd) && !w.endedBy(b) {
		return qp.FaultDomain
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	free := w.current.Load()
	switch {
	case w.closed:
		return qp.FaultKey
	case free.mr != nil && !w.type1:
		return qp.FaultUnbound
	case b.RKey>>variantBits != free.key>>variantBits || b.RKey == free.key:
		return qp.FaultKey
	case w.endedBy(b):
		w.unbind()
		w.replaceRegion(w.current.Load(), &region{key: b.RKey, pd: pd, win: w})
		return qp.NoFault
	case w.type1 && (mr.access|b.Access)&verbs.AccessZeroBased != 0:
		return qp.FaultAccess
	}
	r, fault := mr.subRegion(b)
	if fault != qp.NoFault {
		return fault
	}
	if !mr.addWindow() {
		return qp.FaultKey
	}
	r.win, r.mr = w, mr
	if w.type1 {
		w.unbind()
		free = w.current.Load()
	} else {
		r.qpn = qpn
		pd.noteBound(w, qpn)
	}
	w.replaceRegion(free, r)
	return qp.NoFault
}

// endedBy reports whether b ends the binding of a window of type 1.
func (w *memoryWindow) endedBy(b *verbs.BindMW) bool { return w.type1 && b.Length == 0 }

// subRegion returns the region of a window on mr.
func (mr *memoryRegion) subRegion(b *verbs.BindMW) (*region, qp.Fault) {
	const writes = verbs.AccessRemoteWrite | verbs.AccessRemoteAtomic
	switch {
	case mr.access&verbs.AccessMWBind == 0,
		b.Access&^(verbs.AccessRemote|verbs.AccessZeroBased) != 0,
		b.Access&writes != 0 && mr.access&verbs.AccessLocalWrite == 0:
		return nil, qp.FaultAccess
	}
	off, size := b.Addr-mr.base, uint64(len(mr.mem))
	if b.Length == 0 || off > size || b.Length > size-off {
		return nil, qp.FaultBounds
	}
	end := off + b.Length
	r := &region{key: b.RKey, access: b.Access, pd: mr.pd, base: b.Addr, mem: mr.mem[off:end:end]}
	if b.Access&verbs.AccessZeroBased != 0 {
		r.base = 0
		if b.Access&verbs.AccessRemoteAtomic != 0 && realAddr(r.mem)%8 != 0 {
			return nil, qp.FaultMisalign
		}
	}
	return r, qp.NoFault
}

// Invalidate implements qp.Memory. It does not quiesce the shards: only the
// window's queue pair can be accessing its memory, and that is the caller.
func (m *pdMemory) Invalidate(rkey, qpn uint32) qp.Fault {
	pd := (*protectionDomain)(m)
	found := pd.keys.lookup(rkey)
	switch {
	case found == nil || found.win == nil:
		return qp.FaultKey
	case found.pd != pd:
		return qp.FaultDomain
	}
	w := found.win
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.current.Load()
	switch {
	case w.closed || r.key != rkey:
		return qp.FaultKey
	case w.type1:
		return qp.FaultAccess
	case r.mr == nil:
		return qp.FaultUnbound
	case r.qpn != qpn:
		return qp.FaultQP
	}
	w.unbind()
	return qp.NoFault
}

// unbind ends the binding, if any. The key remains without a target. w.mu is
// held.
func (w *memoryWindow) unbind() {
	r := w.current.Load()
	if r.mr == nil {
		return
	}
	w.replaceRegion(r, &region{key: r.key, pd: r.pd, win: w})
	if !w.type1 {
		w.pd.noteUnbound(w, r.qpn)
	}
	r.mr.removeWindow()
}

// replaceRegion changes the target of the key. w.mu is held.
func (w *memoryWindow) replaceRegion(r, next *region) {
	w.pd.keys.replace(r, next)
	w.current.Store(next)
}

func (pd *protectionDomain) noteBound(w *memoryWindow, qpn uint32) {
	pd.mu.Lock()
	defer pd.mu.Unlock()
	if pd.bound[qpn] == nil {
		pd.bound[qpn] = make(map[*memoryWindow]struct{})
	}
	pd.bound[qpn][w] = struct{}{}
}

func (pd *protectionDomain) noteUnbound(w *memoryWindow, qpn uint32) {
	pd.mu.Lock()
	defer pd.mu.Unlock()
	delete(pd.bound[qpn], w)
	if len(pd.bound[qpn]) == 0 {
		delete(pd.bound, qpn)
	}
}

// unbindQP ends all bindings to a closed queue pair, so that the next one
// with its number does not inherit them. The queue pair must have left its
// shard, so that it binds nothing meanwhile.
func (pd *protectionDomain) unbindQP(qpn uint32) {
	pd.mu.Lock()
	windows := slices.Collect(maps.Keys(pd.bound[qpn]))
	pd.mu.Unlock()
	for _, w := range windows {
		w.mu.Lock()
		if w.current.Load().qpn == qpn {
			w.unbind()
		}
		w.mu.Unlock()
	}
}
