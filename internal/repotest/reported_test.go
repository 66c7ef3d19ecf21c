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

// reported lists the enumerations of docs/verbs.md whose values a device reports.
var reported = []string{"ibv_wc_status", "ibv_wc_opcode", "ibv_event_type", "ibv_port_state"}

// TestReportedValues checks each row of these enumerations: either the adapter has code
// that reports the value and a test that names it, or the row begins with "never: "
// and the reason.
func TestReportedValues(t *testing.T) {
	code, tests := readCode(t, "qp", "rnic", "rdm"), readTests(t)
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
				require.False(t, name.MatchString(code), "docs/verbs.md:%d: %s: documented as never reported, but in the code", l.number, m[1])
				continue
			}
			require.True(t, name.MatchString(code), "docs/verbs.md:%d: %s: not in the code", l.number, m[1])
			word := strings.TrimPrefix(strings.TrimPrefix(strings.Trim(strings.TrimSpace(cells[1]), "`"), "IBV_WC_"), "IBV_EVENT_")
			require.True(t, name.MatchString(tests) || strings.Contains(tests, word), "docs/verbs.md:%d: %s: in no test", l.number, m[1])
		}
	}
	require.Greater(t, checked, 50)
}

// isReported reports whether a heading names one of the reported enumerations.
func isReported(title string) bool {
	for _, enum := range reported {
		if strings.Contains(title, "`"+enum+"`") {
			return true
		}
	}
	return false
}

// TestRejectReasons checks that the comments of package mad list exactly the reject
// reasons and SIDR statuses that package cm sends.
func TestRejectReasons(t *testing.T) {
	code := readCode(t, "cm")
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
			documented := regexp.MustCompile(`\b` + c[1] + `\b`).MatchString(doc)
			sent := regexp.MustCompile(`\bmad\.` + c[1] + `\b`).MatchString(code)
			require.Equal(t, sent, documented, "%s: %s: sent %v, documented %v", file, c[1], sent, documented)
		}
	}
}

// readCode returns the source of the packages in and below dirs, without tests and
// comments.
func readCode(t *testing.T, dirs ...string) string {
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

// readTests returns the source of all tests except those of this package, and the
// scenarios of testdata.
func readTests(t *testing.T) string {
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

// walkGo calls f with each Go file in and below dir.
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

// TestCounters checks every counter of rnic/countertable.go: code must increment it, and
// a test must use its field or name.
func TestCounters(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "rnic", "countertable.go"))
	require.NoError(t, err)
	code, tests := readCode(t, "qp", "rnic", "internal/link", "rdm"), readTests(t)
	rows := regexp.MustCompile("(?m)^\t(\\w+) +uint64 +`json:\"(\\w+)\"`").FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(rows), 45)
	for _, row := range rows {
		field, name := row[1], row[2]
		// Incremented, or copied from another counter.
		counted := regexp.MustCompile(`\b` + field + `(\+\+| \+= |: +\w+(\.\w+)+)`)
		assert.True(t, counted.MatchString(code), "%s: no code increments %s", name, field)
		tested := regexp.MustCompile(`\b(` + field + `|` + name + `)\b`)
		assert.True(t, tested.MatchString(tests), "%s: in no test", name)
	}
}
