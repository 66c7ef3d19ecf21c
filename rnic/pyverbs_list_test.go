package rnic

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pyverbsRow is one row of docs/pyverbs-tests.md.
type pyverbsRow struct {
	file, test string // of pyverbs; test is "" for all tests of a file
	ours       []string
	note       string
}

func pyverbsRows(t *testing.T) (rows []pyverbsRow) {
	text, err := os.ReadFile("../docs/pyverbs-tests.md")
	require.NoError(t, err)
	name := regexp.MustCompile("`([^`]+)`")
	file := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			file = heading
		}
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		r := pyverbsRow{file: file, note: strings.TrimSpace(cells[3])}
		if r.test = name.FindStringSubmatch(cells[1])[1]; !strings.HasPrefix(file, "test_") {
			r.file, r.test = r.test, ""
		}
		for _, m := range name.FindAllStringSubmatch(cells[2], -1) {
			r.ours = append(r.ours, m[1])
		}
		if len(r.ours) == 0 {
			require.Equal(t, "–", strings.TrimSpace(cells[2]), line)
			require.NotEmpty(t, r.note, "no test and no reason: %s", line)
		}
		rows = append(rows, r)
	}
	return rows
}

// TestPyverbsList compares docs/pyverbs-tests.md with rdma-core's list of tests and with the tests
// of this package and of the contract.
func TestPyverbsList(t *testing.T) {
	rows := pyverbsRows(t)

	text, err := os.ReadFile("testdata/pyverbs-tests.txt")
	require.NoError(t, err)
	theirs := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); f[0] != "#" {
			theirs[f[0]+" "+f[1]] = true
		}
	}
	require.Greater(t, len(theirs), 300)
	covered := map[string]bool{}
	for _, r := range rows {
		before := len(covered)
		for key := range theirs {
			file, test, _ := strings.Cut(key, " ")
			if ok, _ := path.Match(r.file, file); ok && (r.test == "" || r.test == test) {
				covered[key] = true
			}
		}
		require.Greater(t, len(covered), before, "%s %s: rdma-core has no such test, or it is here twice", r.file, r.test)
	}
	for key := range theirs {
		require.True(t, covered[key], "%s is missing", key)
	}

	ours := map[string]bool{}
	for _, set := range []struct{ files, test, prefix string }{
		{"*_test.go", `(?m)^func (Test\w+)\(t \*testing\.T\)`, ""}, {"../internal/verbstest/*.go", `(?m)^func test(\w+)\(t \*T\)`, "TestContract/"},
	} {
		files, err := filepath.Glob(set.files)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, m := range regexp.MustCompile(set.test).FindAllSubmatch(source, -1) {
				ours[set.prefix+string(m[1])] = true
			}
		}
	}
	for _, r := range rows {
		for _, test := range r.ours {
			require.True(t, ours[test], "%s, for %s %s, does not exist", test, r.file, r.test)
		}
	}
}
