package pmi

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// A value is put in parts. The first has the key and a head; the others have the key with
// +1, +2 and so on, which no key of a caller contains:
//
//	t3:some.text      text as it is, in 3 parts
//	b1:AAEC           base64 without padding, in 1 part
//
// Every character means itself in both protocols.

// maxParts is the maximum number of parts of a value: each has at least 16 characters.
const maxParts = maxValue/3*4/minPartSize + 1

// minPartSize is the minimum size of a part in characters that a manager must support.
const minPartSize = 16

// encodeValue returns the parts of a value, none longer than room characters.
func encodeValue(value string, room int) []string {
	kind, text := "t", value
	if strings.IndexFunc(value, func(r rune) bool { return r > 127 || !isKeyByte(byte(r)) && !strings.ContainsRune(",@[]()", r) }) >= 0 {
		kind, text = "b", base64.RawURLEncoding.EncodeToString([]byte(value))
	}
	// The head is at most as long as one for the most parts there can be.
	n := 1
	for {
		head := kind + strconv.Itoa(n) + ":"
		first := room - len(head)
		need := 1
		if len(text) > first {
			need += (len(text) - first + room - 1) / room
		}
		if need <= n {
			parts := make([]string, 0, n)
			text = head + text
			for range n {
				end := min(room, len(text))
				parts = append(parts, text[:end])
				text = text[end:]
			}
			return parts
		}
		n = need
	}
}

// decodeHead decodes the first part of a value and returns the number of parts.
func decodeHead(part string) (kind byte, parts int, text string, err error) {
	head, text, ok := strings.Cut(part, ":")
	if !ok || len(head) < 2 || head[0] != 't' && head[0] != 'b' {
		return 0, 0, "", fmt.Errorf("value %.60q not written by package pmi", part)
	}
	parts, err = strconv.Atoi(head[1:])
	if err != nil || parts < 1 || parts > maxParts {
		return 0, 0, "", fmt.Errorf("value %.60q: malformed number of parts", part)
	}
	return head[0], parts, text, nil
}

// decodeParts returns the value of all parts together.
func decodeParts(kind byte, text string) (string, error) {
	if kind == 't' {
		return text, nil
	}
	value, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return "", fmt.Errorf("corrupt value: %w", err)
	}
	return string(value), nil
}

// partKey returns the key of a part of a value.
func partKey(key string, part int) string {
	if part == 0 {
		return key
	}
	return key + "+" + strconv.Itoa(part)
}
