package rnic

import (
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/verbs"
)

// A pdHost provides the services of the device to a protection domain and its
// objects. All methods may be called from any goroutine.
type pdHost interface {
	QueryDevice() verbs.DeviceAttr
	QueryGID(port, index int) (verbs.GIDEntry, error)

	keyTable() *keyTable
	quotas() *quotas
	shardCount() int

	// isClosed reports whether the device has been closed.
	isClosed() bool

	// raiseEvent queues an asynchronous event. It is called with shard locks
	// held and must not take them.
	raiseEvent(ev verbs.AsyncEvent)

	// quiesceShards returns when every shard's lock has been free at least once
	// since the call, so that no shard uses a region removed from the key table
	// before. It is called without locks.
	quiesceShards()

	// pdFreed records that a domain was closed.
	pdFreed(pd *protectionDomain)
}

// A protectionDomain is a protection domain.
type protectionDomain struct {
	host pdHost
	keys *keyTable

	mu     sync.Mutex
	closed bool
	refs   [kinds]int
	bound  map[uint32]map[*memoryWindow]struct{} // windows by the queue pair they are bound to
}

// newPD returns an empty domain. The caller has reserved it in the quota;
// Close releases it by pdFreed.
func newPD(host pdHost) *protectionDomain {
	return &protectionDomain{host: host, keys: host.keyTable(), bound: make(map[uint32]map[*memoryWindow]struct{})}
}

// addRef counts an object of the domain, created by op, against the domain and
// the device, or returns why it cannot be created. release undoes it.
func (pd *protectionDomain) addRef(k kind, op string) error {
	if pd.host.isClosed() {
		return &verbs.OpError{Op: op, Err: verbs.ErrClosed, Detail: "the device was closed"}
	}
	if err := pd.host.quotas().reserve(k, op); err != nil {
		return err
	}
	pd.mu.Lock()
	defer pd.mu.Unlock()
	if pd.closed {
		pd.host.quotas().release(k)
		return &verbs.OpError{Op: op, Err: verbs.ErrClosed, Detail: "the protection domain is closed"}
	}
	pd.refs[k]++
	return nil
}

// release undoes addRef.
func (pd *protectionDomain) release(k kind) {
	pd.mu.Lock()
	pd.refs[k]--
	pd.mu.Unlock()
	pd.host.quotas().release(k)
}

// Close frees the domain. It returns ErrBusy while objects of the domain
// exist, unless the device is closed. Close is idempotent.
func (pd *protectionDomain) Close() error {
	first, err := pd.close()
	if first {
		pd.host.pdFreed(pd)
	}
	return err
}

// close reports whether it is the first call.
func (pd *protectionDomain) close() (first bool, err error) {
	pd.mu.Lock()
	defer pd.mu.Unlock()
	if pd.closed {
		return false, nil
	}
	if users := pd.describeRefs(); users != "" && !pd.host.isClosed() {
		return false, &verbs.OpError{Op: "close PD", Err: verbs.ErrBusy, Detail: "the domain still has " + users}
	}
	pd.closed = true
	return true, nil
}

// describeRefs lists the remaining objects, for example "2 x memory region".
func (pd *protectionDomain) describeRefs() string {
	var list []string
	for k, n := range pd.refs {
		if n > 0 {
			list = append(list, fmt.Sprintf("%d x %v", n, kind(k)))
		}
	}
	return strings.Join(list, ", ")
}

// A pdMemory is a PD in its role as the memory of its queue pairs.
type pdMemory protectionDomain

var _ qp.Memory = (*pdMemory)(nil)

// Local implements qp.Memory. The key must be the LKey of a region of this
// domain; a window has none.
func (m *pdMemory) Local(lkey uint32, addr uint64, n uint32, write bool) ([]byte, qp.Fault) {
	r := m.keys.lookup(lkey)
	switch {
	case r == nil || r.win != nil:
		return nil, qp.FaultKey
	case r.pd != (*protectionDomain)(m):
		return nil, qp.FaultDomain
	case write && r.access&verbs.AccessLocalWrite == 0:
		return nil, qp.FaultAccess
	}
	mem, ok := r.slice(addr, n)
	if !ok {
		return nil, qp.FaultBounds
	}
	return mem, qp.NoFault
}

// Remote implements qp.Memory. Through a window only the window's permissions
// count; memory of an atomic must also be aligned to 8 bytes.
func (m *pdMemory) Remote(rkey uint32, addr uint64, n uint32, need verbs.AccessFlags, qpn uint32) ([]byte, qp.Fault) {
	r, fault := m.lookupRemote(rkey, need, qpn)
	if fault != qp.NoFault {
		return nil, fault
	}
	mem, ok := r.slice(addr, n)
	switch {
	case !ok:
		return nil, qp.FaultBounds
	case need&verbs.AccessRemoteAtomic != 0 && (realAddr(r.mem)+addr-r.base)%8 != 0:
		return nil, qp.FaultMisalign
	}
	return mem, qp.NoFault
}

// CheckKey implements qp.Memory.
func (m *pdMemory) CheckKey(rkey uint32, need verbs.AccessFlags, qpn uint32) qp.Fault {
	_, fault := m.lookupRemote(rkey, need, qpn)
	return fault
}

// lookupRemote returns the region that the peer of a queue pair may access with the permission need.
func (m *pdMemory) lookupRemote(rkey uint32, need verbs.AccessFlags, qpn uint32) (*region, qp.Fault) {
	r := m.keys.lookup(rkey)
	switch {
	case r == nil:
		return nil, qp.FaultKey
	case r.pd != (*protectionDomain)(m):
		return nil, qp.FaultDomain
	case r.win != nil && r.mr == nil:
		return nil, qp.FaultUnbound
	case r.win != nil && r.qpn != qpn && !r.win.type1:
		return nil, qp.FaultQP
	case need&^r.access != 0:
		return nil, qp.FaultAccess
	}
	return r, qp.NoFault
}

// realAddr returns the address of the first byte of mem.
func realAddr(mem []byte) uint64 {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
}
