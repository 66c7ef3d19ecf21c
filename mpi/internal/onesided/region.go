package onesided

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// ErrAttach is wrapped by the error of memory that cannot be attached or detached
// (MPI_ERR_RMA_ATTACH).
var ErrAttach = errors.New("mpi: invalid attach or detach")

// A localRegion is memory of this rank in a window: attached memory, or all memory of a static
// window.
type localRegion struct {
	rma.Memory
	id        uint64             // of attached memory; 0 for a static window
	span      rma.Span           // of attached memory
	holders   map[int]*regionKey // ranks that have looked it up
	detaching bool               // Detach is in progress
	messages  int                // messages in progress to or from it
}

// A regionKey is the key of a region for one rank.
type regionKey struct {
	key     envelope.Key          // zero: packets only
	exposed protocol.Registration // nil: packets only
}

// holderRanks returns the ranks that have looked up the region, sorted.
func (l *localRegion) holderRanks() []int {
	var list []int
	for r := range l.holders {
		list = append(list, r)
	}
	slices.Sort(list)
	return list
}

// isUnused reports whether no rank holds the region and no message is in progress.
func (l *localRegion) isUnused() bool { return len(l.holders) == 0 && l.messages == 0 }

// A remoteRegion is memory of another rank in a window: attached memory, or all memory of a
// static window.
type remoteRegion struct {
	id       uint64 // as in localRegion
	span     rma.Span
	key      envelope.Key
	direct   bool // by RDMA
	users    int  // number of transfers
	recalled bool
}

// appendID appends the id with which packets for a region of a dynamic window begin.
func (r *remoteRegion) appendID(b []byte) []byte {
	if r.id == 0 {
		return b
	}
	return binary.LittleEndian.AppendUint64(b, r.id)
}

// regionIDSize is the size of a region id in bytes.
const regionIDSize = 8

// dynamicState is the state of a dynamic window. The engine's lock guards it.
type dynamicState struct {
	attached  rma.Spans[*localRegion] // regions that other ranks may look up
	detaching rma.Spans[*localRegion] // regions that are being detached
	regions   map[uint64]*localRegion // both, by id
	lastID    uint64                  // of a region
	queries   map[uint64]*regionQuery // lookups without a reply, by id
}

// A regionQuery is a lookup in progress.
type regionQuery struct {
	peer *peer
	span rma.Span
	done bool
	err  error // the span is not attached
}

// addRegion adds a region for attached memory.
func (d *dynamicState) addRegion(mem []byte) error {
	s := rma.Span{Addr: addressOf(mem), Size: uint64(len(mem))}
	if other, ok := d.detaching.FindOverlap(s); ok {
		return fmt.Errorf("%w: %v overlap %v being detached", ErrAttach, s, other)
	}
	local := &localRegion{Memory: rma.Memory{Bytes: mem}, id: d.lastID + 1, span: s, holders: map[int]*regionKey{}}
	if other, ok := d.attached.Add(s, local); !ok {
		return fmt.Errorf("%w: %v overlap attached %v", ErrAttach, s, other)
	}
	d.lastID = local.id
	if d.regions == nil {
		d.regions = map[uint64]*localRegion{}
	}
	d.regions[local.id] = local
	return nil
}

// addressOf returns the address of memory, by which other ranks name it.
func addressOf(mem []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) }

// removeRegion makes the region at an address one that no other rank can look up.
func (d *dynamicState) removeRegion(addr uint64) (*localRegion, error) {
	local, ok := d.attached.Remove(addr)
	if !ok {
		return nil, fmt.Errorf("%w: no attached memory begins at the address%s", ErrAttach, describeNearby(d.attached.Neighbors(addr)))
	}
	local.detaching = true
	d.detaching.Add(local.span, local) // addRegion has checked the overlap
	return local, nil
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
