package repotest

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A promise is a time that a document states and the code must keep.
type promise struct {
	text  string        // quotation of the document, with the time in brackets
	value time.Duration // value in the code
	about bool          // the document rounds the value by less than a tenth
	tests string        // names of tests that show the effect of the time
}

// TestPromisedTimes compares the times that documents promise with the constants of the
// code, and checks that the named tests exist. Every time in a document of the table
// must be a promise or one of the other times, which are measured, examples, or
// properties of other programs.
func TestPromisedTimes(t *testing.T) {
	src, tables := readSource(t), timesOf(t)
	for _, d := range documents(t) {
		table, ok := tables[strings.TrimPrefix(d.path, "docs/")]
		if !ok {
			continue
		}
		text := d.prose()
		for _, p := range table.promises {
			before, rest, _ := strings.Cut(p.text, "[")
			stated, after, ok := strings.Cut(rest, "]")
			require.True(t, ok, p.text)
			quote := before + stated + after
			if strings.Count(text, quote) != 1 {
				t.Errorf("%s: %q: found %d times, want once", d.path, quote, strings.Count(text, quote))
				continue
			}
			text = strings.Replace(text, quote, before+"[]"+after, 1)
			promised := parseTime(t, stated)
			if off := (p.value - promised).Abs(); off > 0 && !(p.about && off < promised/10) {
				t.Errorf("%s: %q: code has %v", d.path, quote, p.value)
			}
			require.NotEmpty(t, p.tests, quote)
			for name := range strings.FieldsSeq(p.tests) {
				if !src.tests[name] {
					t.Errorf("%s: %q: no such test: %s", d.path, quote, name)
				}
			}
		}
		for _, other := range table.others {
			if !strings.Contains(text, other) {
				t.Errorf("%s: %q: not found", d.path, other)
			}
			text = strings.ReplaceAll(text, other, "[]")
		}
		if table.measured {
			continue
		}
		for _, at := range timeRE.FindAllStringIndex(text, -1) {
			t.Errorf("%s: time in %q: no row in internal/repotest/promises_test.go", d.path, text[max(0, at[0]-60):min(len(text), at[1]+30)])
		}
	}
}

// prose returns the text of a document without code blocks, as one line.
func (d *document) prose() string {
	var words []string
	for _, line := range d.lines {
		if line.fence == "" && !strings.HasPrefix(line.text, "    ") {
			words = append(words, strings.Fields(line.text)...)
		}
	}
	return strings.Join(words, " ")
}

// timeRE matches a time. "A second" matches only after a preposition, because it can be
// an ordinal or a rate otherwise.
var timeRE = regexp.MustCompile(`(?i)\b\d[\d.]* ?(?:us|ms|s|h|min)\b(?:[^/\w]|$)|\b(?:\d[\d.]*|half a|a quarter of a|a tenth of a|one|two|three|five|ten) (?:milli)?seconds?\b|` +
	`\b(?:\d[\d.]*|a|an|half an?|two|three|five|ten) (?:minute|hour|millisecond)s?\b|\b(?:within|after|twice|for|each) a (?:second|millisecond)\b|\bonce in a second\b`)

var units = map[string]time.Duration{
	"us": time.Microsecond, "ms": time.Millisecond, "s": time.Second, "h": time.Hour, "min": time.Minute,
	"nanosecond": time.Nanosecond, "microsecond": time.Microsecond, "millisecond": time.Millisecond, "second": time.Second, "minute": time.Minute, "hour": time.Hour,
}

var numbers = map[string]float64{
	"a": 1, "an": 1, "one": 1, "each": 1, "within a": 1, "once in a": 1, "half an": 0.5, "two": 2, "three": 3, "five": 5, "ten": 10, "half a": 0.5, "a quarter of a": 0.25, "a tenth of a": 0.1, "twice a": 0.5,
}

// parseTime returns the value of a time in the notations of the documents.
func parseTime(t *testing.T, text string) time.Duration {
	t.Helper()
	i := strings.LastIndexByte(text, ' ')
	unit, ok := units[strings.TrimSuffix(text[i+1:], "s")]
	if !ok {
		unit, ok = units[text[i+1:]]
	}
	require.True(t, ok && i > 0, "unit of %q", text)
	number := text[:i]
	n, ok := numbers[strings.ToLower(number)]
	if !ok {
		var err error
		n, err = strconv.ParseFloat(number, 64)
		require.NoError(t, err, text)
	}
	return time.Duration(math.Round(n * float64(unit)))
}

// TestParseTime checks the notations of times in documents.
func TestParseTime(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0.64 ms": 640 * time.Microsecond, "3 s": 3 * time.Second, "a minute": time.Minute, "a quarter of a second": 250 * time.Millisecond,
		"2 minutes": 2 * time.Minute, "twice a second": 500 * time.Millisecond, "half a second": 500 * time.Millisecond,
	} {
		require.Equal(t, want, parseTime(t, text), text)
	}
	for _, text := range []string{"after 3 s.", "for a minute", "twice a second", "10 us, then", "within a second", "0.25 s"} {
		require.True(t, timeRE.MatchString(text), text)
	}
	for _, text := range []string{"a second buffer", "bytes a second", "16 s/m"} {
		require.False(t, timeRE.MatchString(text), text)
	}
}
