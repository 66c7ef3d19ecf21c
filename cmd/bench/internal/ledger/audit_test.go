package ledger_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
)

// auditItems is the number of items of the papers that docs/papers-audit.md answers.
const auditItems = 88

// TestAuditIsComplete: each item of the papers has an outcome and evidence, and each experiment, test
// and file that is named as evidence exists.
func TestAuditIsComplete(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/papers-audit.md"))
	require.NoError(t, err)
	tests := testNames(t)
	word := regexp.MustCompile("`([^`]+)`")
	n := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
			require.LessOrEqual(t, len([]rune(cells[i])), 90, cells[i])
		}
		if _, err := strconv.Atoi(cells[0]); err != nil {
			continue
		}
		n++
		require.Equal(t, strconv.Itoa(n), cells[0])
		require.Regexp(t, `^(faithful|stronger|differs, because .+)$`, cells[2], line)
		named := word.FindAllStringSubmatch(cells[3], -1)
		require.NotEmpty(t, named, line)
		for _, m := range named {
			require.True(t, isEvidence(tests, m[1]), "item %d: %s is no experiment, test or file", n, m[1])
		}
	}
	require.Equal(t, auditItems, n)
	require.False(t, isEvidence(tests, "no-such-experiment"))
	require.False(t, isEvidence(tests, "TestNoSuchThing"))
}

func isEvidence(tests map[string]bool, name string) bool {
	if strings.HasPrefix(name, "Test") {
		test, _, _ := strings.Cut(name, "/") // the name of a subtest follows
		return tests[test]
	}
	for _, e := range bench.Default.All() {
		if e.Name == name {
			return true
		}
	}
	_, err := os.Stat(filepath.Join(root, name))
	return err == nil && strings.ContainsAny(name, "/.")
}

// testNames returns the names of all tests of the repository.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			names[string(m[1])] = true
		}
		return err
	}))
	return names
}
