package pingpong

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/softrnic/softrnic/verbs"
)

// RecordLen is the length of a record, its NUL included.
const RecordLen = len("0000:000000:000000:00000000000000000000000000000000") + 1

// A Record describes a queue pair to the peer. Its text is LID, QPN, PSN and GID in hexadecimal
// digits of fixed width, separated by colons and followed by a NUL
// (0000:000011:f6c11c:00000000000000000000ffffc6336402).
type Record struct {
	LID uint16
	QPN uint32 // 24 bits
	PSN uint32 // the first that this side sends, 24 bits
	GID verbs.GID
}

// Append appends the RecordLen bytes of the record to b.
func (r Record) Append(b []byte) []byte {
	return fmt.Appendf(b, "%04x:%06x:%06x:%x\x00", r.LID, r.QPN, r.PSN, r.GID[:])
}

// errRecordSyntax reports bytes that are no record.
var errRecordSyntax = errors.New("want LID:QPN:PSN:GID in 4, 6, 6 and 32 hexadecimal digits and a NUL")

// ParseRecord parses RecordLen bytes.
func ParseRecord(b []byte) (Record, error) {
	if len(b) != RecordLen || b[4] != ':' || b[11] != ':' || b[18] != ':' || b[RecordLen-1] != 0 {
		return Record{}, errRecordSyntax
	}
	var r Record
	if n, err := hex.Decode(r.GID[:], b[19:RecordLen-1]); err != nil || n != len(r.GID) {
		return Record{}, errRecordSyntax
	}
	lid, err1 := parseHex(b[:4])
	qpn, err2 := parseHex(b[5:11])
	psn, err3 := parseHex(b[12:18])
	if err1 != nil || err2 != nil || err3 != nil {
		return Record{}, errRecordSyntax
	}
	r.LID, r.QPN, r.PSN = uint16(lid), qpn, psn
	return r, nil
}

func parseHex(b []byte) (uint32, error) {
	for _, c := range b {
		if c == '+' || c == '-' || c == '_' {
			return 0, errRecordSyntax
		}
	}
	n, err := strconv.ParseUint(string(b), 16, 32)
	return uint32(n), err
}

// formatLine returns the originals' line of a record. The local line of ud has a colon in place of
// the comma.
func (r Record) formatLine(which string, colon bool) string {
	separator := ","
	if colon {
		separator = ":"
	}
	return fmt.Sprintf("  %-15s LID 0x%04x, QPN 0x%06x, PSN 0x%06x%s GID %s\n", which+" address:", r.LID, r.QPN, r.PSN, separator, gidText(r.GID))
}
