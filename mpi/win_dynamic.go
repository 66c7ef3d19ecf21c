package mpi

import (
	"fmt"
	"unsafe"

	"github.com/softrnic/softrnic/mpi/datatype"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// WinCreateDynamic makes a window that has no memory yet (MPI_Win_create_dynamic):
// each rank attaches what it wants to, when it wants to, by WinAttach, and takes it
// back by Win.Detach. Displacements of its operations are addresses, in bytes: those
// that WinAttach and Address return at the target, which tells them the others. It
// takes elements of all kinds, and its Size is 0.
//
// An operation is on one piece that the target has attached, and none that lies
// beyond it, or across two, is begun: it is an ErrRange, which names what is
// attached nearby. The first one on a piece waits for the target to be told where
// that is.
func WinCreateDynamic(c *Comm) (*Win, error) {
	w, err := c.newWindow(nil, datatype.Byte, 1, nil, &dynamicState{})
	if err != nil {
		return nil, c.fail("win-create-dynamic", "", err)
	}
	return w, nil
}

// Address is that of the first element of s, by which other ranks name it in dynamic
// windows that it has been attached to (MPI_Get_address). Those of the elements
// behind it follow, each as many bytes further as an element has. It can be sent like
// any number, and means nothing but at its rank.
func Address[T any](s []T) int { return int(uintptr(unsafe.Pointer(unsafe.SliceData(s)))) }

// WinAttach attaches memory to a dynamic window, and returns its Address
// (MPI_Win_attach). It asks nobody. What is attached must not overlap anything else
// that is, or it is an ErrAttach, and has to have no pointers in it. Until Detach or
// Free the memory is the window's: see Win. Of an empty slice nothing is attached,
// and its address is 0.
func WinAttach[T any](w *Win, s []T) (int, error) {
	mem, _, err := datatype.Raw(s)
	if err == nil {
		err = w.attach(mem)
	}
	switch {
	case err != nil:
		return 0, w.fail("win-attach", "", err)
	case len(mem) == 0:
		return 0, nil
	}
	return Address(s), nil
}

func (w *Win) attach(mem []byte) error {
	_, err := w.lockEngine()
	if err != nil {
		return err
	}
	defer w.eng.Unlock()
	switch {
	case w.dynamic == nil:
		return fmt.Errorf("%w: the window is not a dynamic one", ErrAttach)
	case w.broken != nil:
		return w.broken
	case len(mem) == 0:
		return nil
	}
	return w.dynamic.addRegion(mem)
}

// Detach takes the memory from an address on, where WinAttach has been told that it
// begins, back out of a dynamic window (MPI_Win_detach). Operations that others have
// begun on it are done when it returns, and later ones are an ErrRange there: it waits
// for those ranks that have used the memory to say so, if there are any, whatever
// their programs do meanwhile. Then the memory is the program's, and can be attached
// again. Address 0 is that of nothing.
func (w *Win) Detach(addr int) error {
	if err := w.detach(addr); err != nil {
		return w.fail("detach", fmt.Sprintf("at %d", addr), err)
	}
	return nil
}

func (w *Win) detach(addr int) error {
	core, err := w.lockEngine()
	if err != nil {
		return err
	}
	d := w.dynamic
	var v *localRegion
	switch {
	case d == nil:
		err = fmt.Errorf("%w: the window is not a dynamic one", ErrAttach)
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

// dynamicState is what a window has that its ranks attach memory to. The engine's lock
// guards it.
type dynamicState struct {
	attached  rma.Spans[*localRegion] // that others may ask for
	detaching rma.Spans[*localRegion] // that are being detached
	regions   map[uint64]*localRegion // both, by number
	lastID    uint64                  // number
	queries   map[uint64]*regionQuery // of ours that have no answer yet, by number
}

// addRegion makes a piece of memory.
func (d *dynamicState) addRegion(mem []byte) error {
	s := rma.Span{Addr: uint64(Address(mem)), Size: uint64(len(mem))}
	if other, ok := d.detaching.FindOverlap(s); ok {
		return fmt.Errorf("%w: %v overlap %v, which are being detached", ErrAttach, s, other)
	}
	v := &localRegion{Memory: rma.Memory{Bytes: mem}, id: d.lastID + 1, span: s, holders: map[int]*regionKey{}}
	if other, ok := d.attached.Add(s, v); !ok {
		return fmt.Errorf("%w: %v overlap %v, which are attached", ErrAttach, s, other)
	}
	d.lastID = v.id
	if d.regions == nil {
		d.regions = map[uint64]*localRegion{}
	}
	d.regions[v.id] = v
	return nil
}

// removeRegion makes the piece that begins at an address one that nobody finds any more.
func (d *dynamicState) removeRegion(addr uint64) (*localRegion, error) {
	v, ok := d.attached.Remove(addr)
	if !ok {
		return nil, fmt.Errorf("%w: nothing is attached that begins there%s", ErrAttach, describeNearby(d.attached.Neighbors(addr)))
	}
	v.detaching = true
	d.detaching.Add(v.span, v) // which overlaps nothing: attach has looked
	return v, nil
}

// describeNearby is for errors.
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
