package onesided

import (
	"fmt"
	"unsafe"

	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// AttachMemory attaches memory to a dynamic window (MPI_Win_attach), unless it is empty. It does not
// communicate.
func (w *Window) AttachMemory(mem []byte) error {
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

// DetachMemory detaches the memory at an address, unless that is 0 (MPI_Win_detach). It returns when no
// rank can access the memory any more.
func (w *Window) DetachMemory(addr int) error {
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
	s := rma.Span{Addr: addressOf(mem), Size: uint64(len(mem))}
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

// addressOf returns the address of memory, by which other ranks name it.
func addressOf(mem []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) }

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
