package onesided

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
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
func (w *Window) exposeMemory(rank int, info *windowInfo) error {
	register := func(b []byte, key *[envelope.KeySize]byte) error {
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
	if err := register(w.staticRegion.Bytes, &info.Memory); err != nil {
		return err
	}
	return register(control, &info.Control) // without it the other is not used
}

// decodeInfo records the windows of the other ranks. It returns an error if one rank has
// refused.
func (w *Window) decodeInfo(infos []byte) error {
	size := binary.Size(windowInfo{})
	var bad error
	w.eng.Do(func(*protocol.Core) {
		for r := range w.peers {
			var info windowInfo
			_, _ = binary.Decode(infos[r*size:], binary.LittleEndian, &info)
			p := &w.peers[r]
			p.size, p.unit, p.kind = int(info.Size), int(info.Unit), datatype.Kind(info.Kind)
			_ = p.staticRegion.key.Unmarshal(info.Memory[:]) // which has its length
			_ = p.control.Unmarshal(info.Control[:])
			if p.direct = w.direct && p.control != (envelope.Key{}); p.direct {
				_, p.atomics = w.eng.Fabric().(protocol.Atomics)
			}
			p.staticRegion.direct = p.direct
			switch {
			case bad != nil:
			case info.Refused:
				bad = fmt.Errorf("%w: memory of rank %d refused", ErrWin, r)
			case info.Dynamic != (w.dynamic != nil):
				bad = fmt.Errorf("%w: dynamic window: rank %d %v, this rank %v", deadlock.ErrMismatch, r, info.Dynamic, !info.Dynamic)
			}
		}
	})
	return bad
}
