package perftest

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// ParsePayload parses the format of perftest's --payload_file_path: words of 32 bits in
// hexadecimal digits separated by commas, little-endian in memory.
func ParsePayload(text string) ([]byte, error) {
	var payload []byte
	for i, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\r' || r == '\t' }) {
		digits, ok := strings.CutPrefix(strings.ToLower(word), "0x")
		n, err := strconv.ParseUint(digits, 16, 32)
		if !ok || err != nil {
			if len(word) > 20 {
				word = word[:20] + "..."
			}
			return nil, fmt.Errorf("payload: word %d is %q; write 0xaaaaaaaa,0xbbbbbbbb,...", i+1, word)
		}
		payload = binary.LittleEndian.AppendUint32(payload, uint32(n))
	}
	if len(payload) == 0 {
		return nil, fmt.Errorf("payload: empty; write 0xaaaaaaaa,0xbbbbbbbb,...")
	}
	return payload, nil
}
