package impair_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/link/impair"
)

const docsPath = "../../../docs/faults.md"

// page is docs/faults.md: its fenced blocks by language, and the code spans outside of them by
// line.
type page struct {
	blocks map[string][]string // lines
	spans  [][]string          // by line
}

var spanRE = regexp.MustCompile("`([^`]+)`")

func readPage(t *testing.T) page {
	t.Helper()
	text, err := os.ReadFile(docsPath)
	require.NoError(t, err)
	p := page{blocks: make(map[string][]string)}
	language, inside := "", false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if fence, ok := strings.CutPrefix(line, "```"); ok {
			language, inside = fence, !inside
			continue
		}
		if inside {
			p.blocks[language] = append(p.blocks[language], line)
			continue
		}
		var spans []string
		for _, m := range spanRE.FindAllStringSubmatch(line, -1) {
			spans = append(spans, m[1])
		}
		p.spans = append(p.spans, spans)
	}
	require.False(t, inside, "%s: a block without end", docsPath)
	return p
}

// firstWords are the words with which a text can begin.
var firstWords = []string{
	"loss", "ecn", "delay", "reorder", "duplicate", "corrupt", "rate", "limit", "seed", "drop", "mark",
}

// isExample reports whether a code span is a complete text: it begins with one of firstWords and
// has more than that word.
func isExample(span string) bool {
	first, _, more := strings.Cut(span, " ")
	return more && slices.Contains(firstWords, first)
}

// quotedRE finds texts in Go code, commands and environment variables.
var quotedRE = regexp.MustCompile(`(?:Impair: |SetImpair\(|--impair |SOFTRNIC_IMPAIR=)["']([^"']*)["']`)

// TestDocsExamplesParse checks that Parse accepts the texts of docs/faults.md, and returns the
// errors shown there.
func TestDocsExamplesParse(t *testing.T) {
	p := readPage(t)
	var examples []string
	wrong := 0
	for _, spans := range p.spans {
		if len(spans) == 2 && strings.HasPrefix(spans[1], "impair: ") {
			_, err := impair.Parse(spans[0])
			require.EqualError(t, err, spans[1])
			wrong++
			continue
		}
		for _, s := range spans {
			if isExample(s) {
				examples = append(examples, s)
			}
		}
	}
	require.GreaterOrEqual(t, wrong, 3, "texts that are wrong")
	inSpans := len(examples)
	for _, language := range []string{"go", "sh"} {
		before := len(examples)
		for _, line := range p.blocks[language] {
			for _, m := range quotedRE.FindAllStringSubmatch(line, -1) {
				examples = append(examples, m[1])
			}
		}
		require.Greater(t, len(examples), before, "examples in %s", language)
	}
	require.Greater(t, inSpans, 20, "examples in the text")
	for _, text := range examples {
		spec, err := impair.Parse(text)
		require.NoError(t, err)
		again, err := impair.Parse(spec.String())
		require.NoError(t, err)
		require.Equal(t, spec, again, "%s, written back as %s", text, spec)
	}
}

// TestDocsShowEveryWord checks that there is an example for each of firstWords.
func TestDocsShowEveryWord(t *testing.T) {
	var shown []string
	for _, spans := range readPage(t).spans {
		for _, s := range spans {
			if isExample(s) {
				shown = append(shown, strings.Fields(s)...)
			}
		}
	}
	for _, w := range append([]string{"gemodel", "state", "distribution", "gap", "in", "out", "every", "first", "always", "qp", "psn", "icrc"}, firstWords...) {
		require.Contains(t, shown, w)
	}
}

// TestDocsGrammarIsThatOfThePackage compares the grammar in docs/faults.md with the one in the
// package documentation, line by line.
func TestDocsGrammarIsThatOfThePackage(t *testing.T) {
	source, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	_, grammar, found := strings.Cut(string(source), "// # Grammar\n")
	require.True(t, found)
	grammar, _, found = strings.Cut(grammar, "// PACKETS is ")
	require.True(t, found)
	var want []string
	for line := range strings.Lines(grammar) {
		if rule, ok := strings.CutPrefix(line, "//\t"); ok {
			want = append(want, strings.TrimRight(rule, "\n"))
		}
	}
	require.Greater(t, len(want), 15)
	got := slices.DeleteFunc(readPage(t).blocks["grammar"], func(line string) bool { return line == "" })
	require.Equal(t, want, got)
}
