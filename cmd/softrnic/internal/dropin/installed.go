package dropin

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// linkerCache is the cache of the dynamic linker, with the paths of all libraries in the
// directories of ld.so.conf.
var linkerCache = "/etc/ld.so.cache"

// defaultDirs are directories that the dynamic linker searches without the cache.
var defaultDirs = []string{"/lib64", "/usr/lib64", "/lib", "/usr/lib"}

// isInstalled reports whether the dynamic linker would find a library for the program at path, or
// for any program if path is "": in LD_LIBRARY_PATH, in the run path of the program, in the
// linker's cache or in its default directories (ld.so(8)).
func isInstalled(name string, environ []string, path string) bool {
	dirs := strings.FieldsFunc(lookup(environ, "LD_LIBRARY_PATH"), func(r rune) bool { return r == ':' || r == ';' })
	dirs = append(dirs, runPath(path)...)
	dirs = append(dirs, defaultDirs...)
	for _, dir := range dirs {
		if filepath.Base(dir) != name+".d" && exists(filepath.Join(dir, name)) { // a stand-in is not
			return true
		}
	}
	cache, err := os.ReadFile(linkerCache)
	if err != nil {
		return false
	}
	for rest := cache; ; {
		i := bytes.Index(rest, []byte("/"+name+"\x00"))
		if i < 0 {
			return false
		}
		start := bytes.LastIndexByte(rest[:i], 0) + 1
		if exists(string(rest[start:i]) + "/" + name) {
			return true
		}
		rest = rest[i+len(name):]
	}
}

// importsLibrary reports whether the program at path is linked with a library whose name begins with
// prefix.
func importsLibrary(path, prefix string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	names, err := f.ImportedLibraries()
	return err == nil && slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, prefix) })
}

// runPath returns the directories of DT_RPATH and DT_RUNPATH of a program, with $ORIGIN replaced.
func runPath(path string) (dirs []string) {
	f, err := elf.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	origin := strings.NewReplacer("$ORIGIN", filepath.Dir(path), "${ORIGIN}", filepath.Dir(path))
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		lists, err := f.DynString(tag)
		if err != nil {
			continue
		}
		for _, list := range lists {
			for _, dir := range strings.Split(list, ":") {
				dirs = append(dirs, origin.Replace(dir))
			}
		}
	}
	return dirs
}
