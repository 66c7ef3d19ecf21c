package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/internal/size"
	"github.com/softrnic/softrnic/internal/spelling"
)

// A Kind is the type of a parameter's value.
type Kind string

const (
	Int      Kind = "int"      // an integer of at least 1; K, M, KiB and MiB multiply by 1024 and 1024²
	Ints     Kind = "ints"     // a comma-separated list of such integers
	Float    Kind = "float"    // a decimal number
	Duration Kind = "duration" // a positive duration of up to an hour in the syntax of time.ParseDuration: 50ms
	Pause    Kind = "pause"    // a duration of 0 to a minute
	Pauses   Kind = "pauses"   // a comma-separated list of such durations
	Words    Kind = "words"    // a comma-separated list of words, restricted to Param.Choices if set
)

// A Param is a parameter that --set can change.
type Param struct {
	Name    string   `json:"name"`
	Kind    Kind     `json:"kind"`
	Default string   `json:"default"`
	Quick   string   `json:"quick,omitempty"` // default with --quick; empty means Default
	Choices []string `json:"choices,omitempty"`
	Min     int      `json:"min,omitempty"`      // of Int and Ints; 0: 1
	Max     int      `json:"max,omitempty"`      // of Int and Ints; 0: 2^31-1
	OfClaim bool     `json:"of_claim,omitempty"` // the statements are about the default; with another value they are not judged
	Doc     string   `json:"doc"`

	// Check, unless it is nil, returns an error for a word of Words, or for a number of Int and
	// Ints within the bounds that is not valid.
	Check func(word string) error `json:"-"`
}

// parseValue returns the value as int, []int, float64, time.Duration, []time.Duration or
// []string.
func (p Param) parseValue(s string) (any, error) {
	var v any
	var err error
	switch p.Kind {
	case Int:
		v, err = p.parseInt(s)
	case Ints:
		v, err = parseList(s, p.parseInt)
	case Float:
		v, err = strconv.ParseFloat(s, 64)
	case Duration:
		v, err = parseDuration(s)
	case Pause:
		v, err = parsePause(s)
	case Pauses:
		v, err = parseList(s, parsePause)
	case Words:
		v, err = parseList(s, p.parseWord)
	default:
		err = fmt.Errorf("unknown kind %q", p.Kind)
	}
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", p.Name, s, err)
	}
	return v, nil
}

// parseNumbers returns the values of a list of numbers, pauses in microseconds, or nil for other parameters.
func (p Param) parseNumbers(s string) (list []float64) {
	if p.Kind != Ints && p.Kind != Pauses && p.Kind != Words {
		return nil
	}
	v, err := p.parseValue(s)
	if err != nil {
		return nil
	}
	switch v := v.(type) {
	case []int:
		for _, n := range v {
			list = append(list, float64(n))
		}
	case []time.Duration:
		for _, d := range v {
			list = append(list, measure.Micros(d))
		}
	case []string:
		for _, word := range v {
			if f, err := strconv.ParseFloat(word, 64); err == nil {
				list = append(list, f)
			}
		}
	}
	return list
}

func (p Param) parseWord(s string) (string, error) {
	if len(p.Choices) > 0 && !slices.Contains(p.Choices, s) {
		return "", fmt.Errorf("invalid word %q, want one of %s%s", s, strings.Join(p.Choices, ", "), spelling.Hint(s, p.Choices...))
	}
	if p.Check != nil {
		return s, p.Check(s)
	}
	return s, nil
}

// Limits of durations. Longer ones would only end by an interrupt.
const (
	maxDuration = time.Hour
	maxPause    = time.Minute
)

// parseDuration parses a positive duration.
func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err == nil && (d <= 0 || d > maxDuration) {
		err = fmt.Errorf("%q out of range (0, %v]", s, maxDuration)
	}
	return d, err
}

// parsePause parses a duration of at least 0.
func parsePause(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, fmt.Errorf("invalid duration %q, want 0 or one like 250us", s)
	case d < 0 || d > maxPause:
		return 0, fmt.Errorf("%q out of range [0, %v]", s, maxPause)
	}
	return d, nil
}

// parseInt parses an integer within the bounds of p, which is at least 1: sizes, counts and
// rounds of 0 are not valid.
func (p Param) parseInt(s string) (int, error) {
	least, most := max(1, p.Min), cmp.Or(p.Max, math.MaxInt32)
	n, err := size.Parse(s)
	if err != nil {
		return 0, fmt.Errorf("%w, in the range [%d, %d]", err, least, most)
	}
	if n < least || n > most {
		return 0, fmt.Errorf("%q out of range [%d, %d]", s, least, most)
	}
	if p.Check != nil {
		return n, p.Check(s)
	}
	return n, nil
}

// MultipleOf returns a check of Int and Ints for multiples of n.
func MultipleOf(n int) func(word string) error {
	return func(word string) error {
		if v, err := size.Parse(word); err != nil || v%n != 0 {
			return fmt.Errorf("%q is not a multiple of %d", word, n)
		}
		return nil
	}
}

// IsPowerOfTwo is a check of Int and Ints.
func IsPowerOfTwo(word string) error {
	if v, err := size.Parse(word); err != nil || v < 1 || v&(v-1) != 0 {
		return fmt.Errorf("%q is not a power of two", word)
	}
	return nil
}

func parseList[T any](s string, one func(string) (T, error)) ([]T, error) {
	var list []T
	for part := range strings.SplitSeq(s, ",") {
		v, err := one(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// Settings are the key=value pairs of --set.
type Settings map[string]string

// ParseSettings parses words of the form key=value. The last of several values for one key
// applies.
func ParseSettings(words []string) (Settings, error) {
	s := Settings{}
	for _, w := range words {
		k, v, ok := strings.Cut(w, "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("malformed setting %q, want key=value", w)
		}
		s[k] = v
	}
	return s, nil
}

// CheckSettings returns an error if a setting is a parameter of none of the experiments, or has
// an invalid value for one of them. The error lists the known parameters.
func CheckSettings(experiments []*Experiment, s Settings) error {
	for key := range s {
		if !slices.ContainsFunc(experiments, func(e *Experiment) bool { return e.findParam(key) != nil }) {
			return fmt.Errorf("unknown parameter %q%s; %s", key, spelling.Hint(key, paramNames(experiments)...), describeParams(experiments))
		}
	}
	for _, e := range experiments {
		if _, err := e.paramValues(s, false); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	return nil
}

func paramNames(experiments []*Experiment) (names []string) {
	for _, e := range experiments {
		for _, p := range e.Params {
			names = append(names, p.Name)
		}
	}
	return names
}

func describeParams(experiments []*Experiment) string {
	var b strings.Builder
	b.WriteString("known parameters:")
	for _, e := range experiments {
		for _, p := range e.Params {
			fmt.Fprintf(&b, "\n  %s: %s=%s  (%s) %s", e.Name, p.Name, p.Default, p.Kind, p.Doc)
			if len(p.Choices) > 0 {
				fmt.Fprintf(&b, ": %s", strings.Join(p.Choices, ", "))
			}
		}
	}
	return b.String()
}

func (e *Experiment) findParam(name string) *Param {
	for i := range e.Params {
		if e.Params[i].Name == name {
			return &e.Params[i]
		}
	}
	return nil
}

// paramValues returns the parsed parameters: the setting if there is one, else the default for
// quick or full runs.
func (e *Experiment) paramValues(set Settings, quick bool) (map[string]any, error) {
	values := make(map[string]any, len(e.Params))
	for _, p := range e.Params {
		text := p.Default
		if quick && p.Quick != "" {
			text = p.Quick
		}
		if v, ok := set[p.Name]; ok {
			text = v
		}
		v, err := p.parseValue(text)
		if err != nil {
			return nil, err
		}
		values[p.Name] = v
	}
	return values, nil
}
