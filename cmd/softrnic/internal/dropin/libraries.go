package dropin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Names of the libraries that dropin/build.sh builds.
const (
	preloadName = "libsoftrnic-preload.so"
	engineName  = "libsoftrnic-engine.so"
)

// Libraries of rdma-core. The first one has a stand-in, in a directory of its own. The second one is
// that of the system, which the preloaded library gives a device.
const (
	verbsLibrary = "libibverbs.so.1"
	cmLibrary    = "librdmacm.so.1"
)

// Libraries is a directory with the drop-in libraries.
type Libraries struct{ Dir string }

// Preload returns the path of the library for LD_PRELOAD.
func (l Libraries) Preload() string { return filepath.Join(l.Dir, preloadName) }

// Engine returns the path of the library with the adapter.
func (l Libraries) Engine() string { return filepath.Join(l.Dir, engineName) }

// standInDir returns the directory of the stand-in for a library of rdma-core, for
// LD_LIBRARY_PATH.
func (l Libraries) standInDir(name string) string { return filepath.Join(l.Dir, "standin", name+".d") }

// checkDir returns an error if the name of the directory has a character that LD_PRELOAD or
// LD_LIBRARY_PATH takes for the end of a path (ld.so(8)).
func (l Libraries) checkDir() error {
	if i := strings.IndexAny(l.Dir, " :;\t\n"); i >= 0 {
		return fmt.Errorf("drop-in libraries: %q: LD_PRELOAD cannot name a directory with %q", l.Dir, l.Dir[i])
	}
	return nil
}

// complete returns an error that names the first missing file.
func (l Libraries) complete() error {
	for _, file := range []string{l.Preload(), l.Engine(), filepath.Join(l.standInDir(verbsLibrary), verbsLibrary)} {
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
			return fmt.Errorf("drop-in libraries: %s: no such file", file)
		}
	}
	return nil
}
