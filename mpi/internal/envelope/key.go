package envelope

import (
	"encoding/binary"
	"fmt"
)

// KeySize is the length of a Key in bytes.
const KeySize = 24

// Key is memory that the other rank may read or write: the payload of Ready
// that can be fetched, and of Clear, where without Place only ID counts.
type Key struct {
	Addr uint64
	RKey uint32
	Rail uint32 // which of several adapters the key is for
	ID   uint64 // of Clear: the request at the receiver
}

// MarshalTo writes the key to b[:KeySize].
func (k *Key) MarshalTo(b []byte) {
	_ = b[KeySize-1]
	le := binary.LittleEndian
	le.PutUint64(b[0:], k.Addr)
	le.PutUint32(b[8:], k.RKey)
	le.PutUint32(b[12:], k.Rail)
	le.PutUint64(b[16:], k.ID)
}

// Unmarshal reads a key, which b holds and nothing else.
func (k *Key) Unmarshal(b []byte) error {
	if len(b) != KeySize {
		return fmt.Errorf("%w: a key of %d bytes, not %d", ErrMalformed, len(b), KeySize)
	}
	le := binary.LittleEndian
	*k = Key{Addr: le.Uint64(b[0:]), RKey: le.Uint32(b[8:]), Rail: le.Uint32(b[12:]), ID: le.Uint64(b[16:])}
	return nil
}
