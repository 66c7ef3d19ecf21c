package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// EnvSecret is the environment variable of the secret for a manager at PMI_PORT.
const EnvSecret = "SOFTRNIC_PMI_SECRET"

// A Version is a version of the protocol.
type Version int

// The versions. PMI1 is compatible with managers of PMI-1.1 and 1.2.
const (
	PMI1 Version = 1
	PMI2 Version = 2
)

// String returns "PMI-1" or "PMI-2".
func (v Version) String() string { return "PMI-" + strconv.Itoa(int(v)) }

// An Attr is an attribute of a message.
type Attr struct{ Key, Value string }

// A Message is a request or a reply: a command and its attributes, in order.
type Message struct {
	Cmd   string
	Attrs []Attr
}

// New returns a message with a command and alternating keys and values.
func New(cmd string, attrs ...string) Message {
	m := Message{Cmd: cmd}
	for i := 0; i+1 < len(attrs); i += 2 {
		m.Attrs = append(m.Attrs, Attr{attrs[i], attrs[i+1]})
	}
	return m
}

// With returns the message with one more attribute.
func (m Message) With(key, value string) Message {
	m.Attrs = append(m.Attrs[:len(m.Attrs):len(m.Attrs)], Attr{key, value})
	return m
}

// Get returns the first attribute of a name.
func (m Message) Get(key string) (string, bool) {
	for _, a := range m.Attrs {
		if a.Key == key {
			return a.Value, true
		}
	}
	return "", false
}

// Int returns the first attribute of a name as a number. It is an error if the
// attribute is absent or no 32-bit number.
func (m Message) Int(key string) (int, error) {
	text, ok := m.Get(key)
	if !ok {
		return 0, fmt.Errorf("no %s in %q", key, m)
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%s=%s in %q: not a number", key, text, m)
	}
	return int(n), nil
}

// Bool reports whether an attribute is TRUE, as PMI-2 writes it.
func (m Message) Bool(key string) bool {
	text, _ := m.Get(key)
	return strings.EqualFold(text, "true")
}

// String returns the message for logs, truncated to 200 characters.
func (m Message) String() string {
	var b strings.Builder
	b.WriteString("cmd=" + m.Cmd)
	for _, a := range m.Attrs {
		b.WriteString(" " + a.Key + "=" + a.Value)
		if b.Len() > 200 {
			return b.String()[:197] + "..."
		}
	}
	return b.String()
}
