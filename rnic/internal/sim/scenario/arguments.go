package scenario

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// arguments are the arguments of a command. Arguments that the command does not
// use are an error.
type arguments struct {
	names   []string
	options map[string]string
	used    map[string]bool
	err     error // the first one
}

func parseArguments(list []string) *arguments {
	w := &arguments{options: make(map[string]string), used: make(map[string]bool)}
	for _, word := range list {
		if key, value, ok := strings.Cut(word, "="); ok {
			w.options[key] = value
		} else {
			w.names = append(w.names, word)
		}
	}
	return w
}

func (w *arguments) setError(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// finish returns the first error, or one for an unused argument.
func (w *arguments) finish() error {
	for key := range w.options {
		if !w.used[key] {
			w.setError("option %s: not valid for this command", key)
		}
	}
	if len(w.names) > 0 {
		w.setError("%q: not valid for this command", w.names[0])
	}
	return w.err
}

// nextName consumes the next word without "=".
func (w *arguments) nextName() string {
	if len(w.names) == 0 {
		w.setError("a name is missing")
		return ""
	}
	n := w.names[0]
	w.names = w.names[1:]
	return n
}

// takeFlag consumes a word if present.
func (w *arguments) takeFlag(name string) bool {
	for i, n := range w.names {
		if n == name {
			w.names = append(w.names[:i:i], w.names[i+1:]...)
			return true
		}
	}
	return false
}

// option returns an option. An option for one end has precedence over that for
// both.
func (w *arguments) option(key, end, fallback string) string {
	value := fallback
	for _, k := range []string{key, key + "." + end} {
		if v, ok := w.options[k]; ok {
			w.used[k] = true
			value = v
		}
	}
	return value
}

// numberOption returns a numeric option, decimal or hexadecimal.
func (w *arguments) numberOption(key, end string, fallback uint64) uint64 {
	t := w.option(key, end, "")
	if t == "" {
		return fallback
	}
	n, err := strconv.ParseUint(t, 0, 64)
	if err != nil {
		w.setError("%s=%s: want a number", key, t)
	}
	return n
}

// sizeOption is number for lengths and offsets.
func (w *arguments) sizeOption(key string, fallback int) int {
	return int(w.numberOption(key, "", uint64(fallback)))
}

// nextNumber consumes the next word as a number.
func (w *arguments) nextNumber() uint64 {
	t := w.nextName()
	n, err := strconv.ParseUint(t, 0, 64)
	if err != nil {
		w.setError("%q: want a number", t)
	}
	return n
}

// countOption returns a number of ConnectOptions: absent is 0, the default, and 0 is -1, none.
func (w *arguments) countOption(key, end string) int {
	switch n := w.numberOption(key, end, math.MaxInt); n {
	case math.MaxInt:
		return 0
	case 0:
		return -1
	default:
		return int(n)
	}
}

// codeOption returns a time of ConnectOptions, given by its 5-bit code: absent is 0, the default,
// and a code without a time is -1, none.
func (w *arguments) codeOption(key, end string, timeOf func(code uint8) time.Duration) time.Duration {
	n := w.numberOption(key, end, math.MaxInt)
	if n == math.MaxInt {
		return 0
	}
	if n > 31 {
		w.setError("%s=%d: want a code of 5 bits", key, n)
		return 0
	}
	return cmp.Or(timeOf(uint8(n)), -1)
}

// rnrDelay returns the time of an RNR timer code.
func rnrDelay(code uint8) time.Duration { return time.Duration(wire.RNRNanos(code)) }

// accessOption returns access flags by name.
func (w *arguments) accessOption(end string, fallback verbs.AccessFlags) verbs.AccessFlags {
	t := w.option("access", end, "")
	if t == "" {
		return fallback
	}
	var flags verbs.AccessFlags
	for _, name := range strings.Split(t, "+") {
		found := name == "none"
		for f := verbs.AccessLocalWrite; f <= verbs.AccessFlushPersistent; f <<= 1 {
			if strings.EqualFold(f.String(), name) {
				flags |= f
				found = true
			}
		}
		if !found {
			w.setError("%q: unknown access flag", name)
		}
	}
	return flags
}

// parseDuration parses a time such as 10ms.
func (w *arguments) parseDuration(t string) time.Duration {
	d, err := time.ParseDuration(t)
	if err != nil {
		w.setError("%q: want a time", t)
	}
	return d
}
