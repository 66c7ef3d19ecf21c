package repotest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// document is a Markdown file of the repository.
type document struct {
	path  string // from the root
	lines []docLine
}

// docLine is a line and where it stands.
type docLine struct {
	number int
	text   string
	fence  string // the fenced block's language, or "-" without one; "" outside
}

// documents reads the README and the notes.
func documents(t *testing.T) (docs []document) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	require.Greater(t, len(paths), 5)
	for _, path := range append(paths, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		name, err := filepath.Rel(root, path)
		require.NoError(t, err)
		d := document{path: filepath.ToSlash(name)}
		fence := ""
		for i, line := range strings.Split(string(text), "\n") {
			language, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
			switch {
			case isFence && fence != "":
				fence = ""
			case isFence && language == "":
				fence = "-"
			case isFence:
				fence = language
			default:
				d.lines = append(d.lines, docLine{i + 1, line, fence})
			}
		}
		require.Empty(t, fence, "%s: a block without end", d.path)
		docs = append(docs, d)
	}
	return docs
}

var (
	linkRE = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	codeRE = regexp.MustCompile("`([^`]+)`")

	// What a code span may be. A file without a folder has a known ending.
	pathRE = regexp.MustCompile(`^\.?[\w.-]+(?:/[\w.*-]+)+/?$`)
	fileRE = regexp.MustCompile(`^[\w.-]+\.(?:go|md|txt|hex|pcap|json|s)$`)
	testRE = regexp.MustCompile(`^(?:Test|Fuzz|Benchmark|Example)(?:[A-Z]\w*)?$`)

	// What a command or a block of code may name: ./cmd/bench, ./internal/...
	commandRE = regexp.MustCompile(`(?:^|\s)\./([\w/-]+)`)
)

// TestDocsLinksLead: relative links in the documents lead to something.
func TestDocsLinksLead(t *testing.T) {
	checked := 0
	for _, d := range documents(t) {
		for _, line := range d.lines {
			if line.fence != "" {
				continue
			}
			for _, m := range linkRE.FindAllStringSubmatch(line.text, -1) {
				target, _, _ := strings.Cut(m[1], "#")
				if target == "" || strings.Contains(target, "://") {
					continue
				}
				checked++
				if _, err := os.Stat(filepath.Join(root, filepath.Dir(d.path), target)); err != nil {
					t.Errorf("%s:%d: the link to %s leads nowhere", d.path, line.number, target)
				}
			}
		}
	}
	require.Greater(t, checked, 20)
}

// TestDocsNamesExist: files, tests and Go names in the documents exist. A path
// counts as ours when its first folder is one of the repository's.
func TestDocsNamesExist(t *testing.T) {
	src := readSource(t)
	checked := map[string]int{}
	for _, d := range documents(t) {
		for _, line := range d.lines {
			missing := func(what, name string) {
				t.Errorf("%s:%d: there is no %s %s", d.path, line.number, what, name)
			}
			for _, m := range commandRE.FindAllStringSubmatch(line.text, -1) {
				if folder := strings.TrimRight(m[1], "/"); src.ours(folder) {
					checked["command"]++
					if !src.hasPath(folder) {
						missing("folder", folder)
					}
				}
			}
			if line.fence != "" {
				continue
			}
			for _, m := range codeRE.FindAllStringSubmatch(line.text, -1) {
				switch span := m[1]; {
				case pathRE.MatchString(span) && src.ours(span):
					checked["path"]++
					if !src.hasPath(span) {
						missing("file", span)
					}
				case fileRE.MatchString(span):
					checked["file"]++
					if !slices.ContainsFunc(src.files, func(f string) bool { return filepath.Base(f) == span }) {
						missing("file", span)
					}
				case testRE.MatchString(span):
					checked["test"]++
					if !src.tests[span] {
						missing("test", span)
					}
				default:
					for _, n := range src.namesIn(span) {
						checked["name"]++
						if !src.has(n) {
							missing("Go name", n.String())
						}
					}
				}
			}
		}
	}
	for what, least := range map[string]int{"command": 5, "path": 50, "test": 50, "name": 300} {
		require.Greater(t, checked[what], least, what)
	}
}
