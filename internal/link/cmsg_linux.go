package link

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// cmsg is a control message with up to four bytes of data. All that the link
// sends and asks for are that small, and CMSG_SPACE pads them to one size, so a
// control buffer is an array of these: no walk with alignment arithmetic.
type cmsg struct {
	unix.Cmsghdr
	data [unsafe.Sizeof(uintptr(0))]byte // CMSG_ALIGN: a machine word
}

const cmsgBytes = int(unsafe.Sizeof(cmsg{}))

func makeCmsg(level, kind, dataLen int) (c cmsg) {
	c.Level, c.Type = int32(level), int32(kind)
	c.SetLen(unix.CmsgLen(dataLen))
	return c
}

func (c *cmsg) put16(v uint16)    { binary.NativeEndian.PutUint16(c.data[:], v) }
func (c *cmsg) put32(v uint32)    { binary.NativeEndian.PutUint32(c.data[:], v) }
func (c *cmsg) putBig32(v uint32) { binary.BigEndian.PutUint32(c.data[:], v) }
func (c *cmsg) get32() uint32     { return binary.NativeEndian.Uint32(c.data[:]) }
