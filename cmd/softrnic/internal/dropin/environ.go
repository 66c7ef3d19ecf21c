package dropin

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/rnic"
)

// Variables that the libraries read. docs/environment.md describes them.
const (
	EnvCapture = "SOFTRNIC_CAPTURE" // file for the packets of the devices
	EnvDevices = "SOFTRNIC_DEVICES" // number of devices
	EnvEngine  = "SOFTRNIC_ENGINE"  // path of the engine
	EnvExplain = "SOFTRNIC_EXPLAIN" // 1: explain failed completions
	EnvMode    = "SOFTRNIC_DROPIN"  // off: use the installed libraries
)

// Settings are the settings of a program's devices. Zero values leave the environment alone.
type Settings struct {
	Addr, Impair, Wire string // as SOFTRNIC_ADDR, SOFTRNIC_IMPAIR and SOFTRNIC_WIRE
	Devices            int
	Capture            string // absolute path
	Explain            bool
}

// A Change is a variable with its new value.
type Change struct{ Name, Value string }

// Changes returns the variables that differ from environ for the program at path, or for any
// program if path is "". They keep the libraries that environ preloads, behind the own.
func (l Libraries) Changes(environ []string, path string, s Settings) []Change {
	changes := []Change{{"LD_PRELOAD", joinPaths(l.Preload(), lookup(environ, "LD_PRELOAD"), " :", preloadName)}}
	libraryPath := lookup(environ, "LD_LIBRARY_PATH")
	if !isInstalled(verbsLibrary, environ, path) {
		libraryPath = joinPaths(l.standInDir(verbsLibrary), libraryPath, ":;", verbsLibrary+".d")
	}
	add := func(name, value string) {
		if value != "" {
			changes = append(changes, Change{name, value})
		}
	}
	add("LD_LIBRARY_PATH", libraryPath)
	add(rnic.EnvAddr, s.Addr)
	add(rnic.EnvImpair, s.Impair)
	add(rnic.EnvWire, s.Wire)
	add(EnvCapture, s.Capture)
	if s.Devices > 0 {
		add(EnvDevices, strconv.Itoa(s.Devices))
	}
	if s.Explain {
		add(EnvExplain, "1")
	}
	// UCX drops datagrams of IPv4 GIDs, since it expects 16 bytes of GID in their GRH.
	if lookup(environ, "UCX_UD_VERBS_ETH_DGID_CHECK") == "" {
		add("UCX_UD_VERBS_ETH_DGID_CHECK", "n")
	}
	// The runtime of gcc's AddressSanitizer refuses to be behind a preloaded library.
	if options := lookup(environ, "ASAN_OPTIONS"); importsLibrary(path, "libasan.so") && !strings.Contains(options, asanOrder) {
		add("ASAN_OPTIONS", strings.Trim(options+":"+asanOrder+"=0", ":"))
	}
	return slices.DeleteFunc(changes, func(c Change) bool { return lookup(environ, c.Name) == c.Value })
}

// asanOrder is the option of AddressSanitizer for its place among the libraries.
const asanOrder = "verify_asan_link_order"

// Environ returns environ with Changes applied.
func (l Libraries) Environ(environ []string, path string, s Settings) []string {
	result := slices.Clone(environ)
	for _, c := range l.Changes(environ, path, s) {
		result = slices.DeleteFunc(result, func(v string) bool { return strings.HasPrefix(v, c.Name+"=") })
		result = append(result, c.Name+"="+c.Value)
	}
	return result
}

// lookup returns the value of a variable in environ, of several the first as in getenv(3).
func lookup(environ []string, name string) string {
	for _, v := range environ {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// joinPaths puts path in front of a list. Entries with the same base are removed: those of another
// softrnic run around this one.
func joinPaths(path, list, separators, base string) string {
	entries := strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(separators, r) })
	entries = slices.DeleteFunc(entries, func(e string) bool { return filepath.Base(e) == base })
	return strings.Join(append([]string{path}, entries...), ":")
}

// exists reports whether a file exists.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
