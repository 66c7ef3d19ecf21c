package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
)

func TestCount(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for name, text := range map[string]string{"a": "to be, or not to be:\nthat is the question", "b": "The end of to-be", "c": ""} {
		files = append(files, filepath.Join(dir, name))
		require.NoError(t, os.WriteFile(files[len(files)-1], []byte(text), 0o600))
	}
	for _, n := range []int{1, 2, 4} {
		var out bytes.Buffer // rank 0's
		require.NoError(t, acptest.Run(n, func(p *acp.Process) error { return countWords(t.Context(), p, files, 4, &out) }))
		require.Equal(t, "     3 be\n     3 to\n     2 the\n     1 end\n", out.String())
	}
	require.ErrorIs(t, acptest.Run(1, func(p *acp.Process) error {
		return countWords(t.Context(), p, []string{filepath.Join(dir, "none")}, 4, &bytes.Buffer{})
	}), os.ErrNotExist)
}
