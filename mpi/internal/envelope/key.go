package envelope

import (
	"encoding/binary"
	"fmt"
)

// KeySize is the length of a Key in bytes.
const KeySize = 24

// A Key refers to memory that the other rank may read or write. It is the payload of an
// RTS for an RDMA READ, and of CTS, where without ByWrite only ID is valid.
type Key struct {
	Addr uint64
	RKey uint32
	Rail uint32 // index of the adapter
	ID   uint64 // of CTS: number of the receiver's request
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

// Unmarshal reads a key from b, whose length must be KeySize.
func (k *Key) Unmarshal(b []byte) error {
	if len(b) != KeySize {
		return fmt.Errorf("%w: key of %d bytes, want %d", ErrMalformed, len(b), KeySize)
	}
	le := binary.LittleEndian
	*k = Key{Addr: le.Uint64(b[0:]), RKey: le.Uint32(b[8:]), Rail: le.Uint32(b[12:]), ID: le.Uint64(b[16:])}
	return nil
}
