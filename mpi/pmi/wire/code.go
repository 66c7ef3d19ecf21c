package wire

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// MaxMessage is the longest message that Next takes, in bytes. Those of PMI are
// far below; who sends a longer one does not speak it.
const MaxMessage = 1 << 16

// lengthDigits are in front of every message of PMI-2.
const lengthDigits = 6

// FormatError says that bytes are no message of PMI.
type FormatError struct {
	Bytes []byte // the first of them
	Why   string
}

// Error says what is wrong and shows the bytes.
func (e *FormatError) Error() string {
	return fmt.Sprintf("not a message of PMI: %q: %s", e.Bytes, e.Why)
}

func wrong(b []byte, why string) error {
	return &FormatError{Bytes: bytes.Clone(b[:min(len(b), 80)]), Why: why}
}

// Append writes a message behind b. What the protocol has no way to write is an
// error: it knows no escapes that all managers understand, so there are no
// separators in a value.
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
			return b[:start], wrong([]byte(a.Key), "no name of an attribute")
		}
		if strings.ContainsAny(a.Value, separator+"\n\x00") || v == PMI1 && (a.Value == "" || strings.Contains(a.Value, `\`)) {
			return b[:start], wrong([]byte(a.Value), "no value of an attribute of "+v.String())
		}
		b = append(b, separator+a.Key+"="+a.Value...)
	}
	b = append(b, end...)
	if len(b)-start > MaxMessage {
		return b[:start], wrong(b[start:], "longer than "+strconv.Itoa(MaxMessage)+" bytes")
	}
	if v == PMI2 {
		copy(b[start:], fmt.Sprintf("%*d", lengthDigits, len(b)-start-lengthDigits))
	}
	return b, nil
}

// Next takes the first message from the beginning of b, of either version, and
// says how many bytes it has; 0 if there are some still to come.
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

// nextLine takes a message of PMI-1.
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
			return Message{}, n, wrong(b[:n], "an attribute without a name")
		}
		value = unescape(value)
		if key == "cmd" && m.Cmd == "" {
			m.Cmd = value
			continue
		}
		m.Attrs = append(m.Attrs, Attr{key, value})
	}
	if m.Cmd == "" {
		return Message{}, n, wrong(b[:n], "no command")
	}
	return m, n, nil
}

// cutWord cuts at the first blank without a backslash in front of it.
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

// unescape takes the backslashes away that MPICH 4.2 and later know in PMI-1.
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

// nextMulti takes the one message of PMI-1 that has many lines, mcmd=spawn.
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
			return Message{}, n, wrong(b[:n], "an attribute without a name")
		}
		m.Attrs = append(m.Attrs, Attr{key, value})
	}
	if m.Cmd == "" {
		return Message{}, n, wrong(b[:n], "no command")
	}
	return m, n, nil
}

// nextCounted takes a message of PMI-2.
func nextCounted(b []byte) (m Message, n int, err error) {
	head := b[:min(len(b), lengthDigits)]
	if i := bytes.IndexFunc(head, func(r rune) bool { return r != ' ' && (r < '0' || r > '9') }); i >= 0 {
		return Message{}, 0, wrong(b, "neither cmd= nor a length is in front")
	}
	if len(head) < lengthDigits {
		return Message{}, 0, nil
	}
	size, err := strconv.Atoi(strings.Trim(string(head), " "))
	if err != nil || size > MaxMessage {
		return Message{}, 0, wrong(b, "no length of a message")
	}
	n = lengthDigits + size
	if len(b) < n {
		return Message{}, 0, nil
	}
	text, ok := strings.CutPrefix(string(b[lengthDigits:n]), "cmd=")
	if !ok {
		return Message{}, n, wrong(b[:n], "no command")
	}
	for i, pair := range strings.Split(strings.TrimSuffix(text, ";"), ";") {
		key, value, _ := strings.Cut(pair, "=")
		switch {
		case i == 0:
			m.Cmd = pair
		case key == "":
			return Message{}, n, wrong(b[:n], "an attribute without a name")
		default:
			m.Attrs = append(m.Attrs, Attr{key, value})
		}
	}
	if m.Cmd == "" {
		return Message{}, n, wrong(b[:n], "no command")
	}
	return m, n, nil
}

// tooLong is an error if a message that is not there as a whole has more bytes
// than any has.
func tooLong(b []byte) error {
	if len(b) > MaxMessage {
		return wrong(b, "longer than "+strconv.Itoa(MaxMessage)+" bytes")
	}
	return nil
}
