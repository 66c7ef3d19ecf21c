package perftest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/verbs"
)

// Keys describe a queue pair to the peer (perftest's pingpong_dest).
type Keys struct {
	LID      uint16
	OutReads uint32 // maximum reads and atomics that this side serves concurrently
	QPN      uint32 // 24 bits
	PSN      uint32 // the first that this side sends, 24 bits
	RKey     uint32
	VAddr    uint64 // where the peer may write to or read from
	GID      verbs.GID
	SRQN     uint32
	GIDIndex uint32 // in the sender's table; absent in the text form
}

// Lengths of keys.
const (
	KeysTextLen   = 108 // over TCP, with a GID and a NUL
	KeysBinaryLen = 56  // over an RDMA connection
	KeysLongLen   = 64  // the same to and from perftest 6.29 and up
	noGIDLen      = 59  // over TCP without a GID, which RoCE cannot do with
)

// AppendText appends the KeysTextLen bytes of the TCP form: hexadecimal digits of fixed width,
// each field followed by a colon, the GID byte by byte, and a NUL.
func (k Keys) AppendText(b []byte) []byte {
	b = fmt.Appendf(b, "%04x:%04x:%06x:%06x:%08x:%016x:", k.LID, k.OutReads, k.QPN, k.PSN, k.RKey, k.VAddr)
	for _, x := range k.GID {
		b = fmt.Appendf(b, "%02x:", x)
	}
	return fmt.Appendf(b, "%08x:\x00", k.SRQN)
}

var errKeys = errors.New("want LID:reads:QPN:PSN:rkey:address:GID:SRQN: in hexadecimal digits and a NUL")

// ParseKeysText parses the result of AppendText.
func ParseKeysText(b []byte) (k Keys, err error) {
	fields := strings.Split(strings.TrimSuffix(string(b), ":\x00"), ":")
	if len(b) != KeysTextLen || b[KeysTextLen-1] != 0 || len(fields) != 6+16+1 {
		return Keys{}, errKeys
	}
	number := func(i, digits int) uint64 {
		text := fields[i]
		n, parseErr := strconv.ParseUint(text, 16, 64)
		if parseErr != nil || len(text) != digits || strings.ContainsAny(text, "+-_") {
			err = errKeys
		}
		return n
	}
	k.LID = uint16(number(0, 4))
	k.OutReads = uint32(number(1, 4))
	k.QPN, k.PSN = uint32(number(2, 6)), uint32(number(3, 6))
	k.RKey, k.VAddr = uint32(number(4, 8)), number(5, 16)
	for i := range k.GID {
		k.GID[i] = byte(number(6+i, 2))
	}
	k.SRQN = uint32(number(22, 8))
	if err != nil {
		return Keys{}, err
	}
	return k, nil
}

// AppendBinary appends the KeysBinaryLen bytes of the RDMA form, big-endian.
func (k Keys) AppendBinary(b []byte) []byte { return k.appendBinary(b) }

// AppendLong appends the KeysLongLen bytes that perftest 6.29 and up expects. The field after the
// address belongs to the tail markers of --data_validation, here always 0.
func (k Keys) AppendLong(b []byte) []byte { return k.appendBinary(b, make([]byte, longKeysExtra)...) }

// longKeysExtra is the length by which long keys exceed the binary form.
const longKeysExtra = KeysLongLen - KeysBinaryLen

func (k Keys) appendBinary(b []byte, tail ...byte) []byte {
	for _, x := range []uint32{uint32(k.LID), k.OutReads, k.QPN, k.PSN, k.RKey, 0} {
		b = binary.BigEndian.AppendUint32(b, x)
	}
	b = binary.BigEndian.AppendUint64(b, k.VAddr)
	b = append(b, tail...)
	b = append(b, k.GID[:]...)
	b = binary.BigEndian.AppendUint32(b, k.SRQN)
	return binary.BigEndian.AppendUint32(b, k.GIDIndex)
}

// ParseKeysBinary parses KeysBinaryLen or KeysLongLen bytes.
func ParseKeysBinary(b []byte) (Keys, error) {
	if len(b) != KeysBinaryLen && len(b) != KeysLongLen {
		return Keys{}, fmt.Errorf("want %d or %d bytes of keys, not %d", KeysBinaryLen, KeysLongLen, len(b))
	}
	rest := b[len(b)-KeysBinaryLen:] // aligns the fields after the address
	word := func(b []byte, at int) uint32 { return binary.BigEndian.Uint32(b[at:]) }
	k := Keys{LID: uint16(word(b, 0)), OutReads: word(b, 4), QPN: word(b, 8), PSN: word(b, 12), RKey: word(b, 16),
		VAddr: binary.BigEndian.Uint64(b[24:]), GID: verbs.GID(rest[32:48]), SRQN: word(rest, 48), GIDIndex: word(rest, 52)}
	if k.QPN >= 1<<24 || k.PSN >= 1<<24 {
		return Keys{}, errors.New("queue pair and packet sequence numbers have 24 bits")
	}
	return k, nil
}
