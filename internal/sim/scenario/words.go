package scenario

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// words are the arguments of a command. What nobody asks for is an error.
type words struct {
	names   []string
	options map[string]string
	used    map[string]bool
	err     error // the first one
}

func parseWords(list []string) *words {
	w := &words{options: make(map[string]string), used: make(map[string]bool)}
	for _, word := range list {
		if key, value, ok := strings.Cut(word, "="); ok {
			w.options[key] = value
		} else {
			w.names = append(w.names, word)
		}
	}
	return w
}

func (w *words) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// done returns the first error, or that of an argument without meaning.
func (w *words) done() error {
	for key := range w.options {
		if !w.used[key] {
			w.fail("option %s has no meaning here", key)
		}
	}
	if len(w.names) > 0 {
		w.fail("%q has no meaning here", w.names[0])
	}
	return w.err
}

// name takes the next word without "=".
func (w *words) name() string {
	if len(w.names) == 0 {
		w.fail("a name is missing")
		return ""
	}
	n := w.names[0]
	w.names = w.names[1:]
	return n
}

// flag takes a word if it is there.
func (w *words) flag(name string) bool {
	for i, n := range w.names {
		if n == name {
			w.names = append(w.names[:i:i], w.names[i+1:]...)
			return true
		}
	}
	return false
}

// text returns an option. An option for one end goes before that for both.
func (w *words) text(key, end, fallback string) string {
	value := fallback
	for _, k := range []string{key, key + "." + end} {
		if v, ok := w.options[k]; ok {
			w.used[k] = true
			value = v
		}
	}
	return value
}

// number returns a numeric option, decimal or hexadecimal.
func (w *words) number(key, end string, fallback uint64) uint64 {
	t := w.text(key, end, "")
	if t == "" {
		return fallback
	}
	n, err := strconv.ParseUint(t, 0, 64)
	if err != nil {
		w.fail("%s=%s is no number", key, t)
	}
	return n
}

// size is number for lengths and offsets.
func (w *words) size(key string, fallback int) int {
	return int(w.number(key, "", uint64(fallback)))
}

// next takes the next word as a number.
func (w *words) next() uint64 {
	t := w.name()
	n, err := strconv.ParseUint(t, 0, 64)
	if err != nil {
		w.fail("%q is no number", t)
	}
	return n
}

// code returns a field of ConnectOptions: absent is the default, 0 verbs.Zero.
func (w *words) code(key, end string) uint8 {
	switch n := w.number(key, end, 256); n {
	case 256:
		return 0
	case 0:
		return verbs.Zero
	default:
		return uint8(n)
	}
}

// access returns access flags by name.
func (w *words) access(end string, fallback verbs.AccessFlags) verbs.AccessFlags {
	t := w.text("access", end, "")
	if t == "" {
		return fallback
	}
	var flags verbs.AccessFlags
	for _, name := range strings.Split(t, "+") {
		found := name == "none"
		for f := verbs.AccessLocalWrite; f <= verbs.AccessZeroBased; f <<= 1 {
			if strings.EqualFold(f.String(), name) {
				flags |= f
				found = true
			}
		}
		if !found {
			w.fail("%q is no access flag", name)
		}
	}
	return flags
}

// duration parses a time such as 10ms.
func (w *words) duration(t string) time.Duration {
	d, err := time.ParseDuration(t)
	if err != nil {
		w.fail("%q is no time", t)
	}
	return d
}
