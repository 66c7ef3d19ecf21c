package dropin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// EnvDir is the variable with the directory of the libraries.
const EnvDir = "SOFTRNIC_DROPIN_DIR"

// A Finder finds the libraries, or builds them from the sources of the repository.
type Finder struct {
	Dir        string    // of the libraries; "" searches the places below
	Executable string    // path of the running program, beside which the libraries may be
	Source     string    // root of the repository that the program was built from, "" if it is not here
	Cache      string    // directory for libraries that Find builds
	Log        io.Writer // for the progress of a build
}

// NewFinder returns a Finder for the running program, with the directory of EnvDir and the cache of
// the user.
func NewFinder(log io.Writer) Finder {
	f := Finder{Dir: os.Getenv(EnvDir), Source: findSource(), Log: log}
	if self, err := os.Executable(); err == nil {
		if f.Executable, err = filepath.EvalSymlinks(self); err != nil {
			f.Executable = self
		}
	}
	if cache, err := os.UserCacheDir(); err == nil {
		f.Cache = filepath.Join(cache, "softrnic", "dropin")
	}
	return f
}

// buildScript is the script that builds the libraries, relative to the root of the repository.
var buildScript = filepath.Join("dropin", "build.sh")

// findSource returns the root of the repository that this program was built from, or "". The path
// of this file is in the program, unless it was built with -trimpath.
func findSource() string {
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		return ""
	}
	root := filepath.Join(filepath.Dir(file), "..", "..", "..", "..")
	if _, err := os.Stat(filepath.Join(root, buildScript)); err != nil {
		return ""
	}
	return root
}

// Find returns the libraries. It builds them in the cache if they are not there and the sources are
// at hand, and writes a line to Log before and after.
func (f Finder) Find(ctx context.Context) (Libraries, error) {
	if runtime.GOOS != "linux" {
		return Libraries{}, fmt.Errorf("drop-in libraries: %w on %s: programs with libibverbs are for Linux", errors.ErrUnsupported, runtime.GOOS)
	}
	if f.Dir != "" {
		dir, err := filepath.Abs(f.Dir)
		if err != nil {
			return Libraries{}, err
		}
		l := Libraries{dir}
		if err := l.checkDir(); err != nil {
			return l, err
		}
		if err := l.complete(); err != nil {
			return l, fmt.Errorf("%w; build them with dropin/build.sh %s", err, dir)
		}
		return l, nil
	}
	if f.Executable != "" {
		bin := filepath.Dir(f.Executable)
		for _, dir := range []string{bin, filepath.Join(bin, "..", "lib", "softrnic")} {
			if l := (Libraries{dir}); l.complete() == nil {
				return l, l.checkDir()
			}
		}
	}
	if f.Source == "" || f.Cache == "" {
		return Libraries{}, fmt.Errorf("drop-in libraries: not beside %s, and its sources are not here to build them; "+
			"in a clone of the repository: dropin/build.sh DIR, then set %s=DIR", f.Executable, EnvDir)
	}
	return f.findOrBuild(ctx)
}
