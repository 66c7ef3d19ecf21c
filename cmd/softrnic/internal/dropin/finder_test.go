package dropin_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/dropin"
)

// skipElsewhere skips a test of building on systems without the libraries.
func skipElsewhere(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("Linux only")
	}
}

// TestFindGiven checks a directory that the user names, and one beside the program.
func TestFindGiven(t *testing.T) {
	skipElsewhere(t)
	l := newLibraries(t)
	got, err := dropin.Finder{Dir: l.Dir}.Find(t.Context())
	require.NoError(t, err)
	require.Equal(t, l, got)

	got, err = dropin.Finder{Executable: filepath.Join(l.Dir, "softrnic")}.Find(t.Context())
	require.NoError(t, err)
	require.Equal(t, l, got)

	require.NoError(t, os.Remove(l.Engine()))
	_, err = dropin.Finder{Dir: l.Dir}.Find(t.Context())
	require.EqualError(t, err, "drop-in libraries: "+l.Engine()+": no such file; build them with dropin/build.sh "+l.Dir)
	_, err = dropin.Finder{Executable: filepath.Join(l.Dir, "softrnic")}.Find(t.Context())
	require.ErrorContains(t, err, "not beside "+l.Dir)
	require.ErrorContains(t, err, "set SOFTRNIC_DROPIN_DIR=DIR")
}

// TestFindSeparator checks that directories that LD_PRELOAD cannot name are refused, also as a cache.
func TestFindSeparator(t *testing.T) {
	skipElsewhere(t)
	dir := filepath.Join(t.TempDir(), "my libraries")
	_, err := dropin.Finder{Dir: dir}.Find(t.Context())
	require.ErrorContains(t, err, `LD_PRELOAD cannot name a directory with ' '`)
	root, _ := newSource(t)
	_, err = dropin.Finder{Source: root, Cache: dir, Log: new(bytes.Buffer)}.Find(t.Context())
	require.ErrorContains(t, err, `LD_PRELOAD cannot name a directory with ' '`)
}

// newSource returns the root of a repository whose build script copies libraries and counts its runs
// in a file.
func newSource(t *testing.T) (root, runs string) {
	t.Helper()
	l := newLibraries(t)
	root, runs = t.TempDir(), filepath.Join(t.TempDir(), "runs")
	writeFile(t, filepath.Join(root, "dropin", "build.sh"), []byte("echo run >>"+runs+"\ncp -r "+l.Dir+"/. $1\n"))
	writeFile(t, filepath.Join(root, "dropin", "engine", "main.go"), []byte("package main\n"))
	return root, runs
}

// countRuns returns the number of runs of the script of newSource.
func countRuns(t *testing.T, runs string) int {
	t.Helper()
	text, err := os.ReadFile(runs)
	require.NoError(t, err)
	return strings.Count(string(text), "run\n")
}

// TestFindBuilds checks that libraries are built once for one state of the sources, also by callers
// at the same time, and that old builds are removed.
func TestFindBuilds(t *testing.T) {
	skipElsewhere(t)
	root, runs := newSource(t)
	var log bytes.Buffer
	f := dropin.Finder{Source: root, Cache: filepath.Join(t.TempDir(), "cache"), Log: &log}
	first, err := f.Find(t.Context())
	require.NoError(t, err)
	require.FileExists(t, first.Preload())
	require.Contains(t, log.String(), "building the drop-in libraries")
	log.Reset()

	again, err := f.Find(t.Context())
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.Empty(t, log.String())
	require.Equal(t, 1, countRuns(t, runs))

	writeFile(t, filepath.Join(root, "dropin", "engine", "main_test.go"), []byte("package main\n")) // no source
	writeFile(t, filepath.Join(root, "docs", "x.go"), []byte("package x\n"))
	again, err = f.Find(t.Context())
	require.NoError(t, err)
	require.Equal(t, first, again)

	writeFile(t, filepath.Join(root, "rnic", "x.go"), []byte("package rnic\n"))
	var callers sync.WaitGroup
	var errs [4]error
	for i := range errs {
		callers.Go(func() {
			f := f
			f.Log = new(bytes.Buffer)
			_, errs[i] = f.Find(t.Context())
		})
	}
	callers.Wait()
	require.NoError(t, errors.Join(errs[:]...))
	require.Equal(t, 2, countRuns(t, runs))

	for i := range 6 {
		writeFile(t, filepath.Join(root, "rnic", "x.go"), []byte(strings.Repeat("\n", i)))
		_, err := f.Find(t.Context())
		require.NoError(t, err)
	}
	builds, err := filepath.Glob(filepath.Join(f.Cache, "*", "libsoftrnic-preload.so"))
	require.NoError(t, err)
	require.Len(t, builds, 4)
}

// TestFindBuildFails checks that the error has the words of the script, and that nothing remains.
func TestFindBuildFails(t *testing.T) {
	skipElsewhere(t)
	root, _ := newSource(t)
	f := dropin.Finder{Source: root, Cache: t.TempDir(), Log: new(bytes.Buffer)}
	writeFile(t, filepath.Join(root, "dropin", "build.sh"), []byte("echo apt-get install gcc >&2\nexit 1\n"))
	_, err := f.Find(t.Context())
	require.EqualError(t, err, "drop-in libraries: build: exit status 1\napt-get install gcc")
	left, err := filepath.Glob(filepath.Join(f.Cache, "building-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestFindWithoutCache checks the text where the cache cannot be written.
func TestFindWithoutCache(t *testing.T) {
	skipElsewhere(t)
	root, _ := newSource(t)
	file := writeFile(t, filepath.Join(t.TempDir(), "file"), nil)
	f := dropin.Finder{Source: root, Cache: filepath.Join(file, "cache"), Log: new(bytes.Buffer)}
	_, err := f.Find(t.Context())
	require.EqualError(t, err, "drop-in libraries: cache: mkdir "+file+": not a directory; build them elsewhere with "+
		filepath.Join(root, "dropin", "build.sh")+" DIR, and give --libraries DIR or set SOFTRNIC_DROPIN_DIR=DIR")
}

// TestSourceKey checks which files change the key.
func TestSourceKey(t *testing.T) {
	root, _ := newSource(t)
	before, err := dropin.SourceKey(root)
	require.NoError(t, err)
	for name, changes := range map[string]bool{
		"rnic/device.go": true, "dropin/preload/a.S": true, "dropin/preload/symbols.txt": true, "go.mod": true,
		"rnic/device_test.go": false, "README.md": false, "cmd/x/main.go": false, "dropin/testdata/x.c": false,
	} {
		writeFile(t, filepath.Join(root, filepath.FromSlash(name)), []byte("new"))
		after, err := dropin.SourceKey(root)
		require.NoError(t, err)
		require.Equal(t, changes, before != after, name)
		before = after
	}
}
