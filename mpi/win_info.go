package mpi

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// winInfo describes the window of a rank to another.
type winInfo struct {
	Size, Unit      uint64
	Refused         bool // the memory cannot be a window
	Dynamic         bool
	Kind            uint8
	Memory, Control [envelope.KeySize]byte
}

// encodeInfo registers the memory for all ranks and returns the winInfo for each, encoded, or
// an error.
func (w *Win) encodeInfo(kind datatype.Kind, unit int, refused error) (all []byte, err error) {
	list := make([]winInfo, len(w.peers))
	w.eng.Do(func(*protocol.Core) {
		for r := range list {
			list[r] = winInfo{Size: uint64(len(w.staticRegion.Bytes)), Unit: uint64(unit), Kind: uint8(kind), Dynamic: w.dynamic != nil}
			if r != w.comm.base.Rank && refused == nil {
				if err := w.exposeMemory(r, &list[r]); !errors.Is(err, errors.ErrUnsupported) {
					refused = err
				}
			}
		}
	})
	for r := range list {
		list[r].Refused = refused != nil
	}
	all, _ = binary.Append(nil, binary.LittleEndian, list) // winInfo has a fixed size
	return all, refused
}

// exposeMemory registers the window's memory and the words of its lock for a rank, if the
// fabric can. Otherwise the rank uses packets.
func (w *Win) exposeMemory(rank int, s *winInfo) error {
	give := func(b []byte, key *[envelope.KeySize]byte) error {
		if len(b) == 0 {
			return nil
		}
		k, exposed, err := w.eng.Fabric().RegisterMemory(w.comm.base.WorldRank(rank), b, true)
		if err == nil {
			w.exposed = append(w.exposed, exposed)
			k.MarshalTo(key[:])
		}
		return err
	}
	control, _, _ := datatype.Raw(w.control)
	if err := give(w.staticRegion.Bytes, &s.Memory); err != nil {
		return err
	}
	return give(control, &s.Control) // without it the other is not used
}

// decodeInfo records the windows of the other ranks. It returns an error if one rank has
// refused.
func (w *Win) decodeInfo(shares []byte) error {
	size := binary.Size(winInfo{})
	var bad error
	w.eng.Do(func(*protocol.Core) {
		for r := range w.peers {
			var s winInfo
			_, _ = binary.Decode(shares[r*size:], binary.LittleEndian, &s)
			p := &w.peers[r]
			p.size, p.unit, p.kind = int(s.Size), int(s.Unit), datatype.Kind(s.Kind)
			p.staticRegion.peer = p
			_ = p.staticRegion.key.Unmarshal(s.Memory[:]) // which has its length
			_ = p.control.Unmarshal(s.Control[:])
			if p.direct = w.comm.world.o.OneSided == Direct && p.control != (envelope.Key{}); p.direct {
				_, p.atomics = w.eng.Fabric().(protocol.Atomics)
			}
			p.staticRegion.direct = p.direct
			switch {
			case bad != nil:
			case s.Refused:
				bad = fmt.Errorf("%w: memory of rank %d refused", ErrWin, r)
			case s.Dynamic != (w.dynamic != nil):
				bad = fmt.Errorf("%w: dynamic window: rank %d %v, this rank %v", ErrMismatch, r, s.Dynamic, !s.Dynamic)
			}
		}
	})
	return bad
}
