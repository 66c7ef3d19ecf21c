// Package wiretest decides which tests of the module run over iWARP.
//
//	SOFTRNIC_WIRE=iwarp go test ./rnic ./cm ./sdp ./mpi ./acp ./rdm
//
// runs the tests of these packages on devices that speak iWARP, but for the exceptions of one table.
// TestMain of each package calls [SkipExceptions]. The tests of this package check the table: with
//
//	WIRE_EXCEPTIONS=1/20 go test ./internal/wiretest
//
// they run every twentieth exception over iWARP, which must fail, so that none outlives its reason.
package wiretest

import (
	"flag"
	"os"
	"strings"
)

// The environment variables: the protocol of devices, as in package rnic, and the part of the
// exceptions that is run.
const (
	envWire       = "SOFTRNIC_WIRE"
	envExceptions = "WIRE_EXCEPTIONS"
)

// SkipExceptions makes the test binary of a package, named by its path in the module, skip the tests
// that the table excludes, if devices speak iWARP. Call it from TestMain. The command-line flag
// -skip has effect as well.
func SkipExceptions(pkg string) {
	if os.Getenv(envWire) != "iwarp" || os.Getenv(envExceptions) != "" {
		return
	}
	flag.Parse()
	skip := flag.Lookup("test.skip")
	var patterns []string
	if text := skip.Value.String(); text != "" {
		patterns = append(patterns, text)
	}
	for _, e := range exceptions {
		if e.pkg == pkg {
			for _, name := range e.names() {
				patterns = append(patterns, pattern(name))
			}
		}
	}
	if err := skip.Value.Set(strings.Join(patterns, "|")); err != nil {
		panic(err)
	}
}

// An exception excludes tests of a package.
type exception struct {
	pkg    string
	reason reason
	tests  string // regular expressions of names separated by spaces, with subtests behind slashes
}

func (e *exception) names() []string { return strings.Fields(e.tests) }

// pattern returns the pattern for the flags -run and -skip of a name.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + p + "$"
	}
	return strings.Join(parts, "/")
}
