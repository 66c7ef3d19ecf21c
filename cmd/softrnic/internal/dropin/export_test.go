package dropin

import "testing"

// SetLinkerCache sets the cache and the default directories of the dynamic linker for a test.
func SetLinkerCache(t *testing.T, file string) {
	cache, dirs := linkerCache, defaultDirs
	linkerCache, defaultDirs = file, nil
	t.Cleanup(func() { linkerCache, defaultDirs = cache, dirs })
}

// Names and functions for tests.
var (
	SourceKey     = sourceKey
	SecurityOf    = securityOf
	RDMALibraries = []string{verbsLibrary, cmLibrary}
)

// StandInDir returns the directory of a stand-in library.
func (l Libraries) StandInDir(name string) string { return l.standInDir(name) }
