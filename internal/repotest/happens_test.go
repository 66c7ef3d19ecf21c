package repotest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reported are the enumerations of docs/verbs.md whose values a device reports.
var reported = []string{"ibv_wc_status", "ibv_wc_opcode", "ibv_event_type", "ibv_port_state"}

// TestReportedNamesHappen holds every value that a device could report to its row of
// the table: code of the adapter reports it and a test names it, or the row says
// that it never happens, and why.
func TestReportedNamesHappen(t *testing.T) {
	code, tests := goText(t, "qp", "rnic", "rdm"), testText(t)
	enum, checked := "", 0
	for _, d := range documents(t) {
		if d.path != "docs/verbs.md" {
			continue
		}
		for _, l := range d.lines {
			if title, ok := strings.CutPrefix(l.text, "### "); ok {
				enum = title
			}
			cells := strings.Split(l.text, "|")
			if !isReported(enum) || len(cells) < 5 {
				continue
			}
			m := regexp.MustCompile("`verbs\\.(\\w+)`").FindStringSubmatch(cells[2])
			if m == nil {
				continue
			}
			checked++
			name := regexp.MustCompile(`\bverbs\.` + m[1] + `\b`)
			if strings.HasPrefix(strings.TrimSpace(cells[3]), "never: ") {
				require.False(t, name.MatchString(code), "docs/verbs.md:%d: %s never happens, and code reports it", l.number, m[1])
				continue
			}
			require.True(t, name.MatchString(code), "docs/verbs.md:%d: no code reports %s", l.number, m[1])
			word := strings.TrimPrefix(strings.TrimPrefix(strings.Trim(strings.TrimSpace(cells[1]), "`"), "IBV_WC_"), "IBV_EVENT_")
			require.True(t, name.MatchString(tests) || strings.Contains(tests, word), "docs/verbs.md:%d: no test names %s", l.number, m[1])
		}
	}
	require.Greater(t, checked, 50)
}

func isReported(title string) bool {
	for _, enum := range reported {
		if strings.Contains(title, "`"+enum+"`") {
			return true
		}
	}
	return false
}

// TestRejectReasons holds the list of the reasons and answers that package cm sends to
// its code.
func TestRejectReasons(t *testing.T) {
	code := goText(t, "cm")
	for file, prefix := range map[string]string{"wire/mad/rej.go": "Rej", "wire/mad/sidr.go": "SIDR"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		doc, _, ok := strings.Cut(string(text[strings.Index(string(text), "Package cm sends"):]), "The others come")
		if !ok {
			doc, _, ok = strings.Cut(doc, "the others")
		}
		require.True(t, ok, file)
		consts := regexp.MustCompile(`(?m)^\t(`+prefix+`[A-Z]\w+)\s*(?:Reason =|SIDRStatus =|$)`).FindAllStringSubmatch(string(text), -1)
		require.Greater(t, len(consts), 4)
		for _, c := range consts {
			said := regexp.MustCompile(`\b` + c[1] + `\b`).MatchString(doc)
			sent := regexp.MustCompile(`\bmad\.` + c[1] + `\b`).MatchString(code)
			require.Equal(t, sent, said, "%s: %s: sent %v, documented %v", file, c[1], sent, said)
		}
	}
}

// goText returns the code of packages and those below them, without tests and
// comments.
func goText(t *testing.T, dirs ...string) string {
	t.Helper()
	comment := regexp.MustCompile(`//.*`)
	var b strings.Builder
	for _, dir := range dirs {
		walkGo(t, dir, func(path string, text []byte) {
			if !strings.HasSuffix(path, "_test.go") {
				b.Write(comment.ReplaceAll(text, nil))
			}
		})
	}
	return b.String()
}

// testText returns all tests of the module but those of this package, and the
// scenarios.
func testText(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	walkGo(t, ".", func(path string, text []byte) {
		if strings.HasSuffix(path, "_test.go") && filepath.Base(filepath.Dir(path)) != "repotest" {
			b.Write(text)
		}
	})
	list, err := filepath.Glob(filepath.Join(root, "testdata", "scenario", "*.txt"))
	require.NoError(t, err)
	for _, path := range list {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		b.Write(text)
	}
	return b.String()
}

func walkGo(t *testing.T, dir string, f func(path string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, dir), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		f(path, text)
		return err
	})
	require.NoError(t, err)
}

// TestCountersHappen holds every counter of the tables in rnic/counternames.go: code
// counts it, and a test names it by its field or by its name.
func TestCountersHappen(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "rnic", "counternames.go"))
	require.NoError(t, err)
	code, tests := goText(t, "qp", "rnic", "internal/link", "rdm"), testText(t)
	rows := regexp.MustCompile(`\{c\("(\w+)".*&\w+\.(\w+)`).FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(rows), 45)
	for _, row := range rows {
		name, field := row[1], row[2]
		// Counted itself, or taken over from what counts it.
		counted := regexp.MustCompile(`\b` + field + `(\+\+| \+= |: +\w+(\.\w+)+)`)
		assert.True(t, counted.MatchString(code), "%s: no code counts %s", name, field)
		tested := regexp.MustCompile(`\b(` + field + `|` + name + `)\b`)
		assert.True(t, tested.MatchString(tests), "%s: no test names it", name)
	}
}
