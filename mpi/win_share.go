package mpi

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/datatype"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// winShare is what a rank tells another of its window.
type winShare struct {
	Size, Unit      uint64
	Refused         bool // it cannot be one
	Dynamic         bool
	Kind            uint8
	Memory, Control [envelope.KeySize]byte
}

// shares is what each rank is told. It fails as a whole.
func (w *Win) shares(kind datatype.Kind, unit int, refused error) (all []byte, err error) {
	list := make([]winShare, len(w.peers))
	w.eng.Do(func(*protocol.Core) {
		for r := range list {
			list[r] = winShare{Size: uint64(len(w.mem.Bytes)), Unit: uint64(unit), Kind: uint8(kind), Dynamic: w.dynamic != nil}
			if r != w.comm.rank && refused == nil {
				if err := w.expose(r, &list[r]); !errors.Is(err, errors.ErrUnsupported) {
					refused = err
				}
			}
		}
	})
	for r := range list {
		list[r].Refused = refused != nil
	}
	all, _ = binary.Append(nil, binary.LittleEndian, list) // which have a fixed size
	return all, refused
}

// expose gives a rank the window's memory and the words of its lock, if the fabric
// can. Else all goes in packets.
func (w *Win) expose(rank int, s *winShare) error {
	give := func(b []byte, key *[envelope.KeySize]byte) error {
		if len(b) == 0 {
			return nil
		}
		k, exposed, err := w.eng.Fabric().RegisterMemory(w.comm.job(rank), b, true)
		if err == nil {
			w.exposed = append(w.exposed, exposed)
			k.MarshalTo(key[:])
		}
		return err
	}
	control, _, _ := datatype.Raw(w.control)
	if err := give(w.mem.Bytes, &s.Memory); err != nil {
		return err
	}
	return give(control, &s.Control) // without which nothing is made of the other
}

// meet reads what the other ranks have told.
func (w *Win) meet(shares []byte) error {
	size := binary.Size(winShare{})
	var bad error
	w.eng.Do(func(*protocol.Core) {
		for r := range w.peers {
			var s winShare
			_, _ = binary.Decode(shares[r*size:], binary.LittleEndian, &s)
			p := &w.peers[r]
			p.size, p.unit, p.kind = int(s.Size), int(s.Unit), datatype.Kind(s.Kind)
			p.whole.peer = p
			_ = p.whole.key.Unmarshal(s.Memory[:]) // which has its length
			_ = p.control.Unmarshal(s.Control[:])
			if p.direct = w.comm.world.o.OneSided == Direct && p.control != (envelope.Key{}); p.direct {
				_, p.words = w.eng.Fabric().(protocol.Atomics)
			}
			p.whole.direct = p.direct
			switch {
			case bad != nil:
			case s.Refused:
				bad = fmt.Errorf("%w: that of rank %d cannot be one", ErrWin, r)
			case s.Dynamic != (w.dynamic != nil):
				bad = fmt.Errorf("%w: rank %d makes a window that memory is attached to: %v, and this one: %v", ErrMismatch, r, s.Dynamic, !s.Dynamic)
			}
		}
	})
	return bad
}
