package onesided

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// AttachMemory attaches memory to a dynamic window (MPI_Win_attach), unless it is empty. It does
// not communicate.
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

// DetachMemory detaches the memory at an address, unless that is 0 (MPI_Win_detach). It returns
// when no rank can access the memory any more.
func (w *Window) DetachMemory(addr int) error {
	core, err := w.lockEngine()
	if err != nil {
		return err
	}
	d := w.dynamic
	var local *localRegion
	switch {
	case d == nil:
		err = fmt.Errorf("%w: window is not dynamic", ErrAttach)
	case w.broken != nil:
		err = w.broken
	case addr != 0:
		local, err = d.removeRegion(uint64(uintptr(addr)))
	}
	var ranks []int
	if local != nil {
		ranks = local.holderRanks()
		w.sendRecalls(core, local, ranks)
	}
	w.eng.Unlock()
	if local == nil {
		return err
	}
	err = w.waitUntil("Detach", func() bool { return w.freed || local.isUnused() },
		func(r int) bool { return local.holders[r] != nil }, ranks...)
	if err == nil {
		w.eng.Do(func(*protocol.Core) {
			delete(d.regions, local.id)
			d.detaching.Remove(local.span.Addr)
		})
	}
	return err
}

// sendRecalls sends Recall to the holders of a region.
func (w *Window) sendRecalls(core *protocol.Core, local *localRegion, ranks []int) {
	for _, r := range ranks {
		h := envelope.Header{Context: w.comm.ContextID, Tag: int32(packetRecall), ID: local.id, Length: local.span.Addr}
		_ = core.SendActive(w.peers[r].job, h, nil) // if the rank is lost, so is the window
	}
}
