package dropin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// notSources are directories of the repository without sources of the libraries.
var notSources = []string{".git", ".ci", "cmd", "docs", "examples", "interop", "preloadtest", "testdata"}

// sourceKey returns a hash of the sources of the libraries, their names and the architecture.
func sourceKey(root string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.GOARCH)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && path != root && slices.Contains(notSources, name):
			return filepath.SkipDir
		case !d.Type().IsRegular() || !isSource(name):
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			fmt.Fprintln(h, path[len(root):], len(text))
			h.Write(text)
		}
		return err
	})
	return hex.EncodeToString(h.Sum(nil))[:16], err
}

// isSource reports whether a file of this name is a source of the libraries.
func isSource(name string) bool {
	switch filepath.Ext(name) {
	case ".go":
		return !strings.HasSuffix(name, "_test.go")
	case ".c", ".h", ".s", ".S", ".awk", ".mod", ".sum":
		return true
	}
	return name == "build.sh" || name == "symbols.txt"
}

// keptBuilds is the number of directories of the cache that remain after a build.
const keptBuilds = 4

// findOrBuild returns the libraries of the sources from the cache, or builds them there. Of several
// processes one builds.
func (f Finder) findOrBuild(ctx context.Context) (Libraries, error) {
	key, err := sourceKey(f.Source)
	if err != nil {
		return Libraries{}, fmt.Errorf("drop-in libraries: sources: %w", err)
	}
	l := Libraries{filepath.Join(f.Cache, key)}
	if err := l.checkDir(); err != nil || l.complete() == nil {
		return l, err
	}
	err = os.MkdirAll(f.Cache, 0o755)
	unlock := func() {}
	if err == nil {
		unlock, err = lockFile(filepath.Join(f.Cache, "lock"))
	}
	if err != nil {
		return l, fmt.Errorf("drop-in libraries: cache: %w; build them elsewhere with %s DIR, and give --libraries DIR or set %s=DIR",
			err, filepath.Join(f.Source, buildScript), EnvDir)
	}
	defer unlock()
	if l.complete() == nil { // another process has built them
		return l, nil
	}
	return l, f.build(ctx, l)
}

// build builds the libraries beside their place and then moves them there.
func (f Finder) build(ctx context.Context, l Libraries) error {
	start := time.Now()
	fmt.Fprintln(f.Log, "softrnic: building the drop-in libraries, once for these sources, in", l.Dir)
	dir, err := os.MkdirTemp(f.Cache, "building-")
	if err != nil {
		return fmt.Errorf("drop-in libraries: cache: %w", err)
	}
	defer os.RemoveAll(dir)
	c := exec.CommandContext(ctx, "sh", filepath.Join(f.Source, buildScript), dir)
	if out, err := c.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("drop-in libraries: build: %w\n%s", err, strings.TrimSpace(string(out)))
	}
	if err := (Libraries{dir}).complete(); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(l.Dir); err != nil { // incomplete, from a build that was interrupted
		return err
	}
	if err := os.Rename(dir, l.Dir); err != nil {
		return err
	}
	fmt.Fprintf(f.Log, "softrnic: built in %.0f s\n", time.Since(start).Seconds())
	return f.pruneCache(l.Dir)
}

// pruneCache removes all builds except kept and the newest others.
func (f Finder) pruneCache(kept string) error {
	entries, err := os.ReadDir(f.Cache)
	if err != nil {
		return err
	}
	type build struct {
		path  string
		built time.Time
	}
	var builds []build
	for _, e := range entries {
		path := filepath.Join(f.Cache, e.Name())
		if info, err := e.Info(); err == nil && e.IsDir() && path != kept {
			builds = append(builds, build{path, info.ModTime()})
		}
	}
	slices.SortFunc(builds, func(a, b build) int { return b.built.Compare(a.built) })
	for _, b := range builds[min(len(builds), keptBuilds-1):] {
		if err := os.RemoveAll(b.path); err != nil {
			return err
		}
	}
	return nil
}
