package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStalePaths checks that directories of processes that ended are removed, and others are not, whatever their pid.
func TestStalePaths(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	stale := filepath.Join(tmp, pathsPrefix+"1-killed")
	require.NoError(t, os.MkdirAll(filepath.Join(stale, "infiniband"), 0o755))
	live, lock, err := makePaths()
	require.NoError(t, err)
	other := filepath.Join(tmp, pathsPrefix+"999999999-namespace") // of no process in this PID namespace
	require.NoError(t, os.Mkdir(other, 0o700))
	otherLock, err := lockDir(other)
	require.NoError(t, err)
	removeStalePaths()
	require.NoDirExists(t, stale)
	require.DirExists(t, live)
	require.DirExists(t, other)
	require.True(t, strings.HasPrefix(filepath.Base(live), pathsPrefix))
	require.NoError(t, lock.Close())
	require.NoError(t, otherLock.Close())
	removeStalePaths()
	entries, err := os.ReadDir(tmp)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// TestPathsWithoutTemporary checks that a process has a directory although none can be made in the temporary one.
func TestPathsWithoutTemporary(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	dir, lock, err := makePaths()
	require.NoError(t, err)
	defer lock.Close()
	defer os.RemoveAll(dir)
	require.Equal(t, "/dev/shm", filepath.Dir(dir))
}
