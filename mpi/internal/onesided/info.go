package onesided

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// windowInfo describes the window of a rank to another.
type windowInfo struct {
	Size, Unit      uint64
	Refused         bool // the memory cannot be a window
	Dynamic         bool
	Kind            uint8
	Memory, Control [envelope.KeySize]byte
}

// encodeInfo registers the memory for all ranks and returns the windowInfo for each, encoded, or
// an error.
func (w *Window) encodeInfo(m *Memory, refused error) (all []byte, err error) {
	list := make([]windowInfo, len(w.peers))
	w.eng.Do(func(*protocol.Core) {
		for r := range list {
			list[r] = windowInfo{Size: uint64(len(m.Bytes)), Unit: uint64(m.Unit), Kind: uint8(m.Kind), Dynamic: m.Dynamic}
			if r != w.comm.Rank && refused == nil {
				if err := w.exposeMemory(r, &list[r]); !errors.Is(err, errors.ErrUnsupported) {
					refused = err
				}
			}
		}
	})
	for r := range list {
		list[r].Refused = refused != nil
	}
	all, _ = binary.Append(nil, binary.LittleEndian, list) // windowInfo has a fixed size
	return all, refused
}

// exposeMemory registers the window's memory and the words of its lock for a rank, if the
// fabric can. Otherwise the rank uses packets.
func (w *Window) exposeMemory(rank int, s *windowInfo) error {
	give := func(b []byte, key *[envelope.KeySize]byte) error {
		if len(b) == 0 {
			return nil
		}
		k, exposed, err := w.eng.Fabric().RegisterMemory(w.comm.WorldRank(rank), b, true)
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
func (w *Window) decodeInfo(shares []byte) error {
	size := binary.Size(windowInfo{})
	var bad error
	w.eng.Do(func(*protocol.Core) {
		for r := range w.peers {
			var s windowInfo
			_, _ = binary.Decode(shares[r*size:], binary.LittleEndian, &s)
			p := &w.peers[r]
			p.size, p.unit, p.kind = int(s.Size), int(s.Unit), datatype.Kind(s.Kind)
			p.staticRegion.peer = p
			_ = p.staticRegion.key.Unmarshal(s.Memory[:]) // which has its length
			_ = p.control.Unmarshal(s.Control[:])
			if p.direct = w.table.Direct && p.control != (envelope.Key{}); p.direct {
				_, p.atomics = w.eng.Fabric().(protocol.Atomics)
			}
			p.staticRegion.direct = p.direct
			switch {
			case bad != nil:
			case s.Refused:
				bad = fmt.Errorf("%w: memory of rank %d refused", ErrWin, r)
			case s.Dynamic != (w.dynamic != nil):
				bad = fmt.Errorf("%w: dynamic window: rank %d %v, this rank %v", coll.ErrMismatch, r, s.Dynamic, !s.Dynamic)
			}
		}
	})
	return bad
}
