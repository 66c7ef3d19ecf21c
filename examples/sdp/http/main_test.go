package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRun runs the commands of the package comment, with a file of some megabytes.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	file := make([]byte, 5<<20+1)
	rand.NewChaCha8([32]byte{}).Read(file)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), file, 0o600))

	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, ":0", dir, "", w) }()
	addr, err := bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err)
	url := "http://" + strings.TrimSpace(addr)
	for range 2 {
		var got bytes.Buffer
		require.NoError(t, run(t.Context(), "", "", url+"/file", &got))
		require.True(t, bytes.Equal(file, got.Bytes()))
	}
	require.ErrorContains(t, run(t.Context(), "", "", url+"/nothing", io.Discard), "404 Not Found")
	cancel()
	require.NoError(t, <-ended)

	require.ErrorContains(t, run(t.Context(), "", "", "", io.Discard), "give -listen or -get")
}
