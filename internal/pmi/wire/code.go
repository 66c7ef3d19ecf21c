package wire

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// MaxMessage is the maximum length in bytes of a message that Next accepts, far above
// that of any PMI message.
const MaxMessage = 1 << 16

// lengthDigits is the length of the length prefix of a PMI-2 message.
const lengthDigits = 6

// A FormatError reports bytes that are no PMI message.
type FormatError struct {
	Bytes []byte // the first bytes
	Why   string
}

// Error returns the cause and the bytes.
func (e *FormatError) Error() string {
	return fmt.Sprintf("malformed PMI message %q: %s", e.Bytes, e.Why)
}

func formatError(b []byte, cause string) error {
	return &FormatError{Bytes: bytes.Clone(b[:min(len(b), 80)]), Why: cause}
}

// Append appends the encoding of the message to b. It returns an error for attributes
// that the protocol cannot represent: there is no escape that all managers understand,
// so values contain no separators.
func (m Message) Append(b []byte, v Version) ([]byte, error) {
	start := len(b)
	separator, end := " ", "\n"
	if v == PMI2 {
		separator, end = ";", ";"
		b = append(b, "      "...)
	}
	b = append(b, "cmd="+m.Cmd...)
	for _, a := range m.Attrs {
		if a.Key == "" || strings.ContainsAny(a.Key, " ;=\n\x00") {
			return b[:start], formatError([]byte(a.Key), "invalid attribute name")
		}
		if strings.ContainsAny(a.Value, separator+"\n\x00") || v == PMI1 && (a.Value == "" || strings.Contains(a.Value, `\`)) {
			return b[:start], formatError([]byte(a.Value), "invalid attribute value of "+v.String())
		}
		b = append(b, separator+a.Key+"="+a.Value...)
	}
	b = append(b, end...)
	if len(b)-start > MaxMessage {
		return b[:start], formatError(b[start:], "longer than "+strconv.Itoa(MaxMessage)+" bytes")
	}
	if v == PMI2 {
		copy(b[start:], fmt.Sprintf("%*d", lengthDigits, len(b)-start-lengthDigits))
	}
	return b, nil
}

// Next decodes the first message of b, of either version, and returns its length; 0 if
// it is incomplete.
func Next(b []byte) (m Message, n int, err error) {
	for _, start := range []string{"cmd=", "mcmd="} {
		if len(b) < len(start) && strings.HasPrefix(start, string(b)) {
			return Message{}, 0, nil
		}
	}
	switch {
	case bytes.HasPrefix(b, []byte("cmd=")):
		return nextLine(b)
	case bytes.HasPrefix(b, []byte("mcmd=")):
		return nextMulti(b)
	}
	return nextCounted(b)
}

// nextLine decodes a PMI-1 message.
func nextLine(b []byte) (m Message, n int, err error) {
	n = bytes.IndexByte(b, '\n') + 1
	if n == 0 {
		return Message{}, 0, tooLong(b)
	}
	line := string(b[:n-1])
	for line = strings.TrimLeft(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		var word string
		word, line = cutWord(line)
		key, value, _ := strings.Cut(word, "=")
		if key == "" {
			return Message{}, n, formatError(b[:n], "attribute without a name")
		}
		value = unescape(value)
		if key == "cmd" && m.Cmd == "" {
			m.Cmd = value
			continue
		}
		m.Attrs = append(m.Attrs, Attr{key, value})
	}
	if m.Cmd == "" {
		return Message{}, n, formatError(b[:n], "no command")
	}
	return m, n, nil
}

// cutWord cuts at the first blank that is not escaped.
func cutWord(line string) (word, rest string) {
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			return line[:i], line[i:]
		case '\\':
			i++
		}
	}
	return line, ""
}

// unescape removes the backslash escapes of PMI-1 in MPICH 4.2 and later.
func unescape(value string) string {
	if !strings.Contains(value, `\`) {
		return value
	}
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] == '\\' && i+1 < len(value) {
			i++
		}
		b.WriteByte(value[i])
	}
	return b.String()
}

// nextMulti decodes the only multi-line message of PMI-1, mcmd=spawn.
func nextMulti(b []byte) (m Message, n int, err error) {
	const last = "\nendcmd\n"
	end := bytes.Index(b, []byte(last))
	if end < 0 {
		return Message{}, 0, tooLong(b)
	}
	n = end + len(last)
	for line := range strings.SplitSeq(string(b[:end]), "\n") {
		key, value, _ := strings.Cut(line, "=")
		if key == "mcmd" && m.Cmd == "" {
			m.Cmd = value
			continue
		}
		if key == "" {
			return Message{}, n, formatError(b[:n], "an attribute without a name")
		}
		m.Attrs = append(m.Attrs, Attr{key, value})
	}
	if m.Cmd == "" {
		return Message{}, n, formatError(b[:n], "no command")
	}
	return m, n, nil
}

// nextCounted decodes a PMI-2 message.
func nextCounted(b []byte) (m Message, n int, err error) {
	head := b[:min(len(b), lengthDigits)]
	if i := bytes.IndexFunc(head, func(r rune) bool { return r != ' ' && (r < '0' || r > '9') }); i >= 0 {
		return Message{}, 0, formatError(b, "want cmd= or a length at the start")
	}
	if len(head) < lengthDigits {
		return Message{}, 0, nil
	}
	size, err := strconv.Atoi(strings.Trim(string(head), " "))
	if err != nil || size > MaxMessage {
		return Message{}, 0, formatError(b, "invalid message length")
	}
	n = lengthDigits + size
	if len(b) < n {
		return Message{}, 0, nil
	}
	text, ok := strings.CutPrefix(string(b[lengthDigits:n]), "cmd=")
	if !ok {
		return Message{}, n, formatError(b[:n], "no command")
	}
	for i, pair := range strings.Split(strings.TrimSuffix(text, ";"), ";") {
		key, value, _ := strings.Cut(pair, "=")
		switch {
		case i == 0:
			m.Cmd = pair
		case key == "":
			return Message{}, n, formatError(b[:n], "attribute without a name")
		default:
			m.Attrs = append(m.Attrs, Attr{key, value})
		}
	}
	if m.Cmd == "" {
		return Message{}, n, formatError(b[:n], "no command")
	}
	return m, n, nil
}

// tooLong returns an error if an incomplete message exceeds MaxMessage.
func tooLong(b []byte) error {
	if len(b) > MaxMessage {
		return formatError(b, "longer than "+strconv.Itoa(MaxMessage)+" bytes")
	}
	return nil
}
