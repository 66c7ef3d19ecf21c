package environment_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/environment"
)

func TestUnknown(t *testing.T) {
	got := environment.Unknown([]string{"PATH=/", "SOFTRNIC_LOG=off", "SOFTRNIC_IMPIAR=loss 1%", "SOFTRNIC_ADR=", "SOFTRNIC_MPI_TEST=1", "SOFTRNIC_ADR=x"})
	require.Equal(t, []string{"SOFTRNIC_ADR", "SOFTRNIC_IMPIAR"}, got)
	require.Equal(t, "SOFTRNIC_IMPAIR", environment.Nearest("SOFTRNIC_IMPIAR"))
	require.Equal(t, "SOFTRNIC_ADDR", environment.Nearest("SOFTRNIC_ADR"))
	require.Equal(t, "SOFTRNIC_MPI_NET", environment.Nearest("SOFTRNIC_MPINET"))
}

// TestKnown finds every variable of the sources in the list, and nothing else.
func TestKnown(t *testing.T) {
	require.True(t, slices.IsSorted(environment.Known))
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
			if strings.HasSuffix(path, "_test.go") && !slices.Contains(environment.Known, m[1]) {
				continue // made up there
			}
			found[m[1]] = true
		}
		return err
	}))
	for v := range found {
		require.Empty(t, environment.Unknown([]string{v + "=1"}))
	}
	for _, v := range environment.Known {
		require.True(t, found[v], "%s is read nowhere", v)
	}
}
