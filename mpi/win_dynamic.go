package mpi

import (
	"fmt"
	"unsafe"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// WinCreateDynamic makes a window without memory (MPI_Win_create_dynamic). Each rank attaches
// memory with WinAttach and detaches it with Win.Detach at any time. Displacements of
// operations are addresses in bytes, which WinAttach and Address return at the target; the
// target sends them to the origins. A dynamic window accepts elements of all kinds, and its
// Size is 0.
//
// An operation must be inside of one attached slice, else it fails with ErrRange, which names
// the memory attached nearby. The first operation on a slice waits for a lookup at the target.
func WinCreateDynamic(c *Comm) (*Win, error) {
	w, err := c.newWindow(nil, datatype.Byte, 1, nil, &dynamicState{})
	if err != nil {
		return nil, c.fail("win-create-dynamic", "", err)
	}
	return w, nil
}

// Address returns the address of the first element of s, by which other ranks name it in
// dynamic windows (MPI_Get_address). Element i is at Address plus i times the element size. The
// address can be sent as a number and is valid at its rank only.
func Address[T any](s []T) int { return int(uintptr(unsafe.Pointer(unsafe.SliceData(s)))) }

// WinAttach attaches memory to a dynamic window and returns its Address (MPI_Win_attach). It
// does not communicate. The memory must not overlap other attached memory, else the error is
// ErrAttach, and must not contain pointers. It belongs to the window until Detach or Free: see
// Win. An empty slice is not attached, and its address is 0.
func WinAttach[T any](w *Win, s []T) (int, error) {
	mem, _, err := datatype.Raw(s)
	if err == nil {
		err = w.attachMemory(mem)
	}
	switch {
	case err != nil:
		return 0, w.fail("win-attach", "", err)
	case len(mem) == 0:
		return 0, nil
	}
	return Address(s), nil
}

func (w *Win) attachMemory(mem []byte) error {
	_, err := w.lockEngine()
	if err != nil {
		return err
	}
	defer w.eng.Unlock()
	switch {
	case w.dynamic == nil:
		return fmt.Errorf("%w: window is not dynamic", ErrAttach)
	case w.broken != nil:
		return w.broken
	case len(mem) == 0:
		return nil
	}
	return w.dynamic.addRegion(mem)
}

// Detach detaches the memory at an address that WinAttach has returned (MPI_Win_detach). When
// it returns, the operations of other ranks on it are complete, and their later ones fail with
// ErrRange: it waits for a reply of each rank that has used the memory, which does not depend
// on their programs. Then the memory belongs to the program and may be attached again. Address
// 0 is ignored.
func (w *Win) Detach(addr int) error {
	if err := w.detachMemory(addr); err != nil {
		return w.fail("detach", fmt.Sprintf("at %d", addr), err)
	}
	return nil
}

func (w *Win) detachMemory(addr int) error {
	core, err := w.lockEngine()
	if err != nil {
		return err
	}
	d := w.dynamic
	var v *localRegion
	switch {
	case d == nil:
		err = fmt.Errorf("%w: window is not dynamic", ErrAttach)
	case w.broken != nil:
		err = w.broken
	case addr != 0:
		v, err = d.removeRegion(uint64(uintptr(addr)))
	}
	var ranks []int
	if v != nil {
		ranks = v.holderRanks()
		w.sendRecalls(core, v, ranks)
	}
	w.eng.Unlock()
	if v == nil {
		return err
	}
	err = w.waitUntil("Detach", func() bool { return w.freed || v.isUnused() },
		func(r int) bool { return v.holders[r] != nil }, ranks...)
	if err == nil {
		w.eng.Do(func(*protocol.Core) {
			delete(d.regions, v.id)
			d.detaching.Remove(v.span.Addr)
		})
	}
	return err
}

// dynamicState is the state of a dynamic window. The engine's lock guards it.
type dynamicState struct {
	attached  rma.Spans[*localRegion] // regions that other ranks may look up
	detaching rma.Spans[*localRegion] // regions that are being detached
	regions   map[uint64]*localRegion // both, by id
	lastID    uint64                  // of a region
	queries   map[uint64]*regionQuery // lookups without a reply, by id
}

// addRegion adds a region for attached memory.
func (d *dynamicState) addRegion(mem []byte) error {
	s := rma.Span{Addr: uint64(Address(mem)), Size: uint64(len(mem))}
	if other, ok := d.detaching.FindOverlap(s); ok {
		return fmt.Errorf("%w: %v overlap %v being detached", ErrAttach, s, other)
	}
	v := &localRegion{Memory: rma.Memory{Bytes: mem}, id: d.lastID + 1, span: s, holders: map[int]*regionKey{}}
	if other, ok := d.attached.Add(s, v); !ok {
		return fmt.Errorf("%w: %v overlap attached %v", ErrAttach, s, other)
	}
	d.lastID = v.id
	if d.regions == nil {
		d.regions = map[uint64]*localRegion{}
	}
	d.regions[v.id] = v
	return nil
}

// removeRegion makes the region at an address one that no other rank can look up.
func (d *dynamicState) removeRegion(addr uint64) (*localRegion, error) {
	v, ok := d.attached.Remove(addr)
	if !ok {
		return nil, fmt.Errorf("%w: no attached memory begins at the address%s", ErrAttach, describeNearby(d.attached.Neighbors(addr)))
	}
	v.detaching = true
	d.detaching.Add(v.span, v) // addRegion has checked the overlap
	return v, nil
}

// describeNearby returns the regions near an address, for errors.
func describeNearby(below, above rma.Span) string {
	switch {
	case below.Size == 0 && above.Size == 0:
		return "; nothing is attached"
	case above.Size == 0:
		return fmt.Sprintf("; attached nearby: %v", below)
	case below.Size == 0:
		return fmt.Sprintf("; attached nearby: %v", above)
	}
	return fmt.Sprintf("; attached nearby: %v, %v", below, above)
}
