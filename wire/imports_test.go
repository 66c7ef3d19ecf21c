package wire_test

import (
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestImports checks that the codec imports no packages for I/O, waiting or sharing, and none of
// this module.
func TestImports(t *testing.T) {
	allowed := []string{"encoding/binary", "hash/crc32", "math", "math/bits", "net/netip", "strconv"}
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	checked := 0
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, i := range file.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			require.NoError(t, err)
			require.True(t, slices.Contains(allowed, path), "%s imports %s", e.Name(), path)
		}
		checked++
	}
	require.Greater(t, checked, 10)
}
