package verbs_test

import (
	"go/ast"
	"go/build"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const tablePath = "../docs/verbs.md"

// golden is the content of testdata/libibverbs.txt: the kind of each public name
// of libibverbs ("func", "const", "struct", "union" or "enum") and the values of
// constants.
type golden struct {
	kind  map[string]string
	value map[string]int64
}

func readGolden(t *testing.T) golden {
	t.Helper()
	text, err := os.ReadFile("testdata/libibverbs.txt")
	require.NoError(t, err)
	g := golden{kind: map[string]string{}, value: map[string]int64{}}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		g.kind[f[1]] = f[0]
		if f[0] == "const" {
			v, err := strconv.ParseInt(f[2], 10, 64)
			require.NoError(t, err)
			g.value[f[1]] = v
		}
	}
	require.Greater(t, len(g.kind), 800)
	return g
}

// tableRow is a table row, a heading or a list item of docs/verbs.md that has names
// of libibverbs.
type tableRow struct {
	line int
	c    []cName
	ours []string // without "verbs."
}

// cName is a name of libibverbs in the table.
type cName struct {
	kind    string // "struct", "union", "enum", or "" for functions and constants
	pattern string // the name, or with "*" many names
}

func (c cName) matches(name, kind string) bool {
	ok, err := path.Match(c.pattern, name)
	if c.kind == "" {
		return ok && err == nil && (kind == "func" || kind == "const")
	}
	return ok && err == nil && kind == c.kind
}

var (
	cNameRE = regexp.MustCompile("(?:(struct|union|enum) )?`((?:ibv_|IBV_|mult_to_|mbps_to_)[\\w*]*)`")
	ourRE   = regexp.MustCompile(`\bverbs\.([A-Z][\w.]*\w)`)
)

// readTable reads the rows, the headings of the form "enum `a`: `verbs.B`", and the
// items of lists, in which names of libibverbs have no counterpart.
func readTable(t *testing.T) []tableRow {
	t.Helper()
	text, err := os.ReadFile(tablePath)
	require.NoError(t, err)
	var rows []tableRow
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		var c, ours string
		if item, ok := strings.CutPrefix(line, "- "); ok {
			c = item
			for _, next := range lines[i+1:] {
				if !strings.HasPrefix(next, "  ") {
					break
				}
				c += " " + strings.TrimSpace(next)
			}
		} else if cells := strings.Split(line, "|"); len(cells) == 5 {
			c, ours = cells[1], cells[2]
		} else if heading, ok := strings.CutPrefix(line, "### enum "); ok {
			c, ours, _ = strings.Cut("enum "+heading, ":")
		}
		row := tableRow{line: i + 1}
		for _, m := range cNameRE.FindAllStringSubmatch(c, -1) {
			row.c = append(row.c, cName{kind: m[1], pattern: m[2]})
		}
		for _, m := range ourRE.FindAllStringSubmatch(ours, -1) {
			row.ours = append(row.ours, m[1])
		}
		if len(row.c) > 0 {
			rows = append(rows, row)
		}
	}
	require.Greater(t, len(rows), 200)
	return rows
}

// checkedPackage returns this package, type-checked from source.
func checkedPackage(t *testing.T) *types.Package {
	t.Helper()
	pkg, err := checkOnce()
	require.NoError(t, err)
	return pkg
}

var checkOnce = sync.OnceValues(func() (*types.Package, error) {
	sources, err := filepath.Glob("*.go")
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range sources {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	if build.Default.GOROOT == "" { // built with -trimpath
		root, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			return nil, err
		}
		build.Default.GOROOT = strings.TrimSpace(string(root))
	}
	conf := types.Config{Importer: importer.ForCompiler(fset, "source", nil)}
	return conf.Check("verbs", fset, files, nil)
})

// lookup returns the object "Name", "Type.Field" or "Type.Method", or nil.
func lookup(pkg *types.Package, name string) types.Object {
	outer, inner, nested := strings.Cut(name, ".")
	obj := pkg.Scope().Lookup(outer)
	if obj == nil || !nested {
		return obj
	}
	member, _, _ := types.LookupFieldOrMethod(obj.Type(), true, pkg, inner)
	return member
}

// TestTableNamesExist checks that each name verbs.X in docs/verbs.md is declared.
func TestTableNamesExist(t *testing.T) {
	pkg := checkedPackage(t)
	text, err := os.ReadFile(tablePath)
	require.NoError(t, err)
	for i, line := range strings.Split(string(text), "\n") {
		for _, m := range ourRE.FindAllStringSubmatch(line, -1) {
			if lookup(pkg, m[1]) == nil {
				t.Errorf("%s:%d: verbs.%s is not declared", tablePath, i+1, m[1])
			}
		}
	}
}

// TestTableIsCompleteOverLibibverbs checks that every function, type and constant of
// libibverbs is in exactly one row, heading or list item, and that these have no
// other names.
func TestTableIsCompleteOverLibibverbs(t *testing.T) {
	g := readGolden(t)
	lines := map[string][]int{}
	for _, row := range readTable(t) {
		for _, c := range row.c {
			found := false
			for name, kind := range g.kind {
				if c.matches(name, kind) {
					lines[name] = append(lines[name], row.line)
					found = true
				}
			}
			if !found {
				t.Errorf("%s:%d: not in libibverbs: %s %s", tablePath, row.line, c.kind, c.pattern)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.kind)) {
		if len(lines[name]) != 1 {
			t.Errorf("%s: %s %s in lines %v, want one", tablePath, g.kind[name], name, lines[name])
		}
	}
}

// TestTableIsCompleteOverPackage checks that the document has every exported name of
// the package.
func TestTableIsCompleteOverPackage(t *testing.T) {
	text, err := os.ReadFile(tablePath)
	require.NoError(t, err)
	documented := map[string]bool{}
	for _, m := range ourRE.FindAllStringSubmatch(string(text), -1) {
		documented[m[1]] = true
		documented[strings.Split(m[1], ".")[0]] = true
	}
	for _, name := range checkedPackage(t).Scope().Names() {
		if token.IsExported(name) && !documented[name] {
			t.Errorf("%s: verbs.%s is missing", tablePath, name)
		}
	}
}

// TestConstantsEqualThoseOfC checks that the two constants of a row are equal, and that
// every constant of the package is in such a row.
func TestConstantsEqualThoseOfC(t *testing.T) {
	g, pkg := readGolden(t), checkedPackage(t)
	equal := map[string]bool{}
	for _, row := range readTable(t) {
		if len(row.c) != 1 || len(row.ours) != 1 {
			continue
		}
		want, isConst := g.value[row.c[0].pattern]
		ours, ok := lookup(pkg, row.ours[0]).(*types.Const)
		if !isConst || !ok {
			continue
		}
		got, exact := constant.Int64Val(ours.Val())
		require.True(t, exact)
		if got != want {
			t.Errorf("%s:%d: verbs.%s = %d, %s = %d", tablePath, row.line, row.ours[0], got, row.c[0].pattern, want)
		}
		equal[row.ours[0]] = true
	}
	alone := map[string]bool{"GSI": true, "SendDelayAck": true, "AccessRemote": true, "RetryForever": true}
	for _, name := range pkg.Scope().Names() {
		if _, isConst := pkg.Scope().Lookup(name).(*types.Const); isConst && token.IsExported(name) && !alone[name] {
			require.True(t, equal[name], "%s: no row with verbs.%s and a constant of libibverbs", tablePath, name)
		}
	}
}
