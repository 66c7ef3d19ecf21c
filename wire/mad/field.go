package mad

import "encoding/binary"

// putUint24 writes 24 bits.
func putUint24(b []byte, v uint32) {
	b[0], b[1], b[2] = byte(v>>16), byte(v>>8), byte(v)
}

// getUint24 reads 24 bits.
func getUint24(b []byte) uint32 {
	return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
}

// putIDs writes the two communication ids that begin most messages.
func putIDs(b []byte, local, remote uint32) {
	binary.BigEndian.PutUint32(b[0:], local)
	binary.BigEndian.PutUint32(b[4:], remote)
}

// getIDs reads the two communication ids that begin most messages.
func getIDs(b []byte) (local, remote uint32) {
	return binary.BigEndian.Uint32(b[0:]), binary.BigEndian.Uint32(b[4:])
}

func boolBit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
