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

// The codec is pure: it imports nothing that could do I/O, wait or share, and
// nothing of ours.
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
