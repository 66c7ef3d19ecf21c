package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUpToDate: the files in the tree are what the command writes.
func TestUpToDate(t *testing.T) {
	dir := filepath.Join("..", "..", "mpi")
	for handle, file := range map[string]string{"Cart": "cart_comm.go", "World": "world_comm.go"} {
		want, err := generateMethods(dir, handle, "Comm", file)
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "%s: run go generate ./mpi", file)
	}
}
