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

// docLine is a line of a document with its position.
type docLine struct {
	number int
	text   string
	fence  string // language of the fenced block, "-" if unnamed, "" outside of blocks
}

// documents reads README.md and docs/*.md.
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
		require.Empty(t, fence, "%s: fenced block is not closed", d.path)
		docs = append(docs, d)
	}
	return docs
}

var (
	linkRE = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	codeRE = regexp.MustCompile("`([^`]+)`")

	// Forms of a code span. A file name without a directory needs a known extension.
	pathRE = regexp.MustCompile(`^\.?[\w.-]+(?:/[\w.*-]+)+/?$`)
	fileRE = regexp.MustCompile(`^[\w.-]+\.(?:go|md|txt|hex|pcap|json|s)$`)
	testRE = regexp.MustCompile(`^(?:(?:Test|Fuzz|Benchmark|Example)(?:[A-Z]\w*)?|TestContract/\w+)$`)

	packageTestRE = regexp.MustCompile(`^([\w-]+(?:/[\w-]+)+)\.(Test\w+)$`)

	// A directory in a command or a block of code: ./cmd/bench, ./internal/...
	commandRE = regexp.MustCompile(`(?:^|\s)\./([\w/-]+)`)
)

// TestDocsLinksExist checks that the targets of relative links exist.
func TestDocsLinksExist(t *testing.T) {
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
					t.Errorf("%s:%d: link to %s: no such file", d.path, line.number, target)
				}
			}
		}
	}
	require.Greater(t, checked, 20)
}

// TestDocsNamesExist checks that files, tests and Go names in code spans of the
// documents exist. A path is checked if its first element is in the repository.
func TestDocsNamesExist(t *testing.T) {
	src := readSource(t)
	checked := map[string]int{}
	for _, d := range documents(t) {
		for _, line := range d.lines {
			reportMissing := func(kind, name string) {
				t.Errorf("%s:%d: no such %s: %s", d.path, line.number, kind, name)
			}
			for _, m := range commandRE.FindAllStringSubmatch(line.text, -1) {
				if dir := strings.TrimRight(m[1], "/"); src.isOwnPath(dir) {
					checked["command"]++
					if !src.hasPath(dir) {
						reportMissing("directory", dir)
					}
				}
			}
			if line.fence != "" {
				continue
			}
			for _, m := range codeRE.FindAllStringSubmatch(line.text, -1) {
				switch span := m[1]; {
				case packageTestRE.MatchString(span):
					checked["test"]++
					if name := packageTestRE.FindStringSubmatch(span); !src.hasPath(name[1]) || !src.tests[name[2]] {
						reportMissing("test", span)
					}
				case testRE.MatchString(span):
					checked["test"]++
					if !src.tests[span] {
						reportMissing("test", span)
					}
				case pathRE.MatchString(span) && src.isOwnPath(span):
					checked["path"]++
					if !src.hasPath(span) {
						reportMissing("file", span)
					}
				case fileRE.MatchString(span):
					checked["file"]++
					if !slices.ContainsFunc(src.files, func(f string) bool { return filepath.Base(f) == span }) {
						reportMissing("file", span)
					}
				default:
					for _, n := range src.findNames(span) {
						checked["name"]++
						if !src.hasName(n) {
							reportMissing("Go name", n.String())
						}
					}
				}
			}
		}
	}
	for kind, least := range map[string]int{"command": 5, "path": 50, "test": 50, "name": 300} {
		require.Greater(t, checked[kind], least, kind)
	}
}
