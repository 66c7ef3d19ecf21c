package ledger_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/ledger"
	"github.com/softrnic/softrnic/cmd/bench/internal/report"
)

// auditItems is the number of items of the papers that docs/papers-audit.md answers.
const auditItems = 88

// TestAuditIsComplete: each item of the papers has an answer, evidence and the outcomes of today, and each
// experiment, test and file that is named as evidence exists, a test in the package that is named.
func TestAuditIsComplete(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, ledger.AuditPath))
	require.NoError(t, err)
	runs, err := ledger.Recorded(&bench.Default)
	require.NoError(t, err)
	require.Equal(t, ledger.Audit(string(page), runs), string(page), "run `go run ./cmd/bench record` in the root")
	word := regexp.MustCompile("`([^`]+)`")
	n := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if _, err := strconv.Atoi(cells[0]); err != nil {
			continue
		}
		n++
		require.Len(t, cells, 5, line)
		require.Equal(t, strconv.Itoa(n), cells[0])
		require.Regexp(t, `^(faithful|stronger|differs, because .+)$`, cells[2], line)
		named := word.FindAllStringSubmatch(cells[3], -1)
		require.NotEmpty(t, named, line)
		for _, m := range named {
			require.True(t, isEvidence(m[1]), "item %d: %s is no experiment, test or file", n, m[1])
		}
	}
	require.Equal(t, auditItems, n)
	require.True(t, isEvidence("mpi.TestRails"))
	require.True(t, isEvidence("rnic.TestContract/SRQTraffic"))
	for _, name := range []string{"no-such-experiment", "mpi.TestNoSuchThing", "sdp.TestRails", "TestRails", "rnic.TestContract/NoSuchThing"} {
		require.False(t, isEvidence(name), name)
	}
}

// TestAudit: the last column has the outcomes of the experiments of a row, and an old one is replaced.
func TestAudit(t *testing.T) {
	runs := map[string]report.Saved{
		"one": {Result: &bench.Result{Outcomes: []bench.Outcome{{Word: bench.Refuted}, {Word: bench.Reproduced}}}},
		"two": {Result: &bench.Result{Outcomes: []bench.Outcome{{Word: bench.Refuted}}}},
	}
	page := "# A title\n\n| # | item | here | shown by | outcomes |\n| 1 | a | faithful | `one`, `two` | 9 holds |\n| 2 | b | stronger | `go.mod` | |\n"
	want := strings.Replace(page, "9 holds", "1 reproduced, 2 refuted", 1)
	require.Equal(t, want, ledger.Audit(page, runs))
	require.Equal(t, want, ledger.Audit(want, runs))
}

// isEvidence reports whether name is an experiment, a test as path/of/package.TestName, or a file.
func isEvidence(name string) bool {
	if dir, test, ok := strings.Cut(name, ".Test"); ok {
		test, subtest, _ := strings.Cut(test, "/")
		declared := regexp.MustCompile(`(?m)^func Test` + test + `\(`)
		// The subtests of the contract of verbs are in a package of their own.
		return hasText(dir, "_test.go", declared) && (subtest == "" || hasText("internal/verbstest", ".go", regexp.MustCompile(`\{"`+subtest+`", `)))
	}
	for _, e := range bench.Default.All() {
		if e.Name == name {
			return true
		}
	}
	_, err := os.Stat(filepath.Join(root, name))
	return err == nil && strings.ContainsAny(name, "/.")
}

// hasText reports whether a file of a folder of the repository has text that matches.
func hasText(dir, suffix string, text *regexp.Regexp) bool {
	paths, _ := filepath.Glob(filepath.Join(root, dir, "*"+suffix)) // the pattern is valid
	for _, path := range paths {
		if content, err := os.ReadFile(path); err == nil && text.Match(content) {
			return true
		}
	}
	return false
}
