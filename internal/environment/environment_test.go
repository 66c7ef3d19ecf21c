package environment_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/environment"
)

func TestUnknown(t *testing.T) {
	got := environment.Unknown([]string{"PATH=/", "SOFTRNIC_LOG=off", "SOFTRNIC_IMPIAR=loss 1%", "SOFTRNIC_ADR=", "SOFTRNIC_MPI_TEST=1", "SOFTRNIC_ADR=x"})
	require.Equal(t, []string{"SOFTRNIC_ADR", "SOFTRNIC_IMPIAR"}, got)
}

// TestWarnUnknown checks the suggestion for each unknown variable.
func TestWarnUnknown(t *testing.T) {
	t.Setenv("SOFTRNIC_IMPIAR", "loss 1%")
	t.Setenv("SOFTRNIC_MPINET", "ud")
	t.Setenv("SOFTRNIC_BASELESS_ASSUMPTION", "1")
	var got []string
	environment.WarnUnknown(func(text string) { got = append(got, text) })
	environment.WarnUnknown(func(text string) { require.Fail(t, "warned twice", text) })
	require.Equal(t, []string{
		"environment variable SOFTRNIC_BASELESS_ASSUMPTION is unknown and has no effect",
		`environment variable SOFTRNIC_IMPIAR is unknown and has no effect; did you mean "SOFTRNIC_IMPAIR"?`,
		`environment variable SOFTRNIC_MPINET is unknown and has no effect; did you mean "SOFTRNIC_MPI_NET"?`,
	}, got)
}

// TestKnown checks that the list has exactly the variables of the sources.
func TestKnown(t *testing.T) {
	require.True(t, slices.IsSortedFunc(environment.Variables, func(a, b environment.Variable) int { return strings.Compare(a.Name, b.Name) }))
	name := regexp.MustCompile(`"(SOFTRNIC_[A-Z_]*[A-Z])"`)
	found := map[string]bool{}
	root := filepath.Join("..", "..")
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			if err == nil {
				err = filepath.SkipDir
			}
			return err
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.Contains(path, "environment") {
			return nil
		}
		source, err := os.ReadFile(path)
		for _, m := range name.FindAllStringSubmatch(string(source), -1) {
			if strings.HasSuffix(path, "_test.go") && len(environment.Unknown([]string{m[1] + "="})) > 0 {
				continue // examples that the package itself invents
			}
			found[m[1]] = true
		}
		return err
	}))
	for v := range found {
		require.Empty(t, environment.Unknown([]string{v + "=1"}))
	}
	for _, v := range environment.Variables {
		require.True(t, found[v.Name], "%s is read nowhere", v.Name)
	}
}

// TestDocument compares docs/environment.md with the table.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "environment.md"))
	require.NoError(t, err)
	var listed, want []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(SOFTRNIC_[A-Z_]+)`").FindAllStringSubmatch(string(text), -1) {
		listed = append(listed, m[1])
	}
	for _, v := range environment.Variables {
		want = append(want, v.Name)
		require.NotEmpty(t, v.Values, v.Name)
		require.NotEmpty(t, v.Doc, v.Name)
	}
	slices.Sort(listed)
	require.Equal(t, want, listed)
}

func TestParsers(t *testing.T) {
	t.Setenv("SOFTRNIC_MPI_NET", "UD")
	w, err := environment.Word("SOFTRNIC_MPI_NET", "rdma", "ud")
	require.NoError(t, err)
	require.Equal(t, "ud", w)
	_, err = environment.Word("SOFTRNIC_MPI_NET", "rdma", "hybrid", "tcp")
	require.EqualError(t, err, "SOFTRNIC_MPI_NET=UD: want rdma, hybrid or tcp")
	t.Setenv("SOFTRNIC_MPI_RAILS", "9")
	_, _, err = environment.Int("SOFTRNIC_MPI_RAILS", "queue pairs", 1, 8)
	require.EqualError(t, err, "SOFTRNIC_MPI_RAILS=9: want a number of queue pairs from 1 to 8")
	n, ok, err := environment.Int("SOFTRNIC_MPI_RAILS", "queue pairs", 1, 9)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, 9, n)
	t.Setenv("SOFTRNIC_MPI_GIVE_UP", "1ms")
	_, err = environment.Duration("SOFTRNIC_MPI_GIVE_UP", time.Second)
	require.EqualError(t, err, "SOFTRNIC_MPI_GIVE_UP=1ms: want a duration such as 30s, at least 1s")
}
