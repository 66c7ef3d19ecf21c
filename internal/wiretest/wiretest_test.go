package wiretest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// module is the path from this package to the root of the module.
const module = "../.."

var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Example|Fuzz)\w*)\(`)

// testNames returns the names of the tests of a package.
func testNames(t *testing.T, pkg string) []string {
	files, err := filepath.Glob(filepath.Join(module, pkg, "*_test.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files, pkg)
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range testFunction.FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}

// TestExceptionsExist checks that each name of the table is that of a test, once, and that every package
// of the table but one has tests that run.
func TestExceptionsExist(t *testing.T) {
	excluded := map[string]map[string]bool{}
	seen := map[string]bool{}
	for _, e := range exceptions {
		require.NotEmpty(t, e.reason)
		tests := testNames(t, e.pkg)
		if excluded[e.pkg] == nil {
			excluded[e.pkg] = map[string]bool{}
		}
		for _, name := range e.names() {
			require.False(t, seen[e.pkg+" "+name], "%s %s is there twice", e.pkg, name)
			seen[e.pkg+" "+name] = true
			top := regexp.MustCompile(pattern(strings.Split(name, "/")[0]))
			i := slices.IndexFunc(tests, top.MatchString)
			require.NotEqual(t, -1, i, "%s has no %s", e.pkg, name)
			for _, test := range tests {
				if !strings.Contains(name, "/") && top.MatchString(test) {
					excluded[e.pkg][test] = true
				}
			}
		}
	}
	for pkg := range maps.Keys(excluded) {
		if pkg != "rdm" { // all of it needs datagrams
			require.Greater(t, len(testNames(t, pkg)), len(excluded[pkg]), pkg)
		}
	}
}

// TestExceptionsFail runs a part of the exceptions over iWARP, which the environment selects. Each must
// fail: one that passes is none.
func TestExceptionsFail(t *testing.T) {
	text := os.Getenv(envExceptions)
	if text == "" {
		t.Skip(envExceptions + " selects no part of the exceptions, for example 1/20")
	}
	var part, parts int
	_, err := fmt.Sscanf(text, "%d/%d", &part, &parts)
	require.NoError(t, err)
	n := 0
	for _, e := range exceptions {
		for _, name := range e.names() {
			if n++; n%parts != part%parts {
				continue
			}
			t.Run(e.pkg+" "+name, func(t *testing.T) {
				cmd := exec.Command("go", "test", "-vet=off", "-short", "-count=1", "-json", "-timeout", "2m", "-run", pattern(name), "./"+e.pkg)
				cmd.Dir = module
				cmd.Env = append(os.Environ(), envWire+"=iwarp")
				out, err := cmd.Output()
				require.Error(t, err, "it passes over iWARP: remove it from the table")
				require.True(t, hasFailed(out), "no test has failed:\n%s", out)
			})
		}
	}
}

// hasFailed reports whether the output of go test -json has a test that failed or did not end.
func hasFailed(out []byte) bool {
	running := map[string]bool{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var e struct{ Action, Test string }
		if err := d.Decode(&e); err == io.EOF {
			return len(running) > 0
		} else if err != nil || e.Action == "fail" && e.Test != "" {
			return err == nil
		}
		switch {
		case e.Test == "":
		case e.Action == "run":
			running[e.Test] = true
		case e.Action == "pass" || e.Action == "skip":
			delete(running, e.Test)
		}
	}
}
