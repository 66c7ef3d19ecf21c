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

// golden is testdata/libibverbs.txt: the kind of each public name of
// libibverbs ("func", "const", "struct", "union" or "enum"), and the values of
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

// tableRow is one row of docs/verbs.md.
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

// readTable reads the rows, and the headings of the form "enum `a`: `verbs.B`".
func readTable(t *testing.T) []tableRow {
	t.Helper()
	text, err := os.ReadFile(tablePath)
	require.NoError(t, err)
	var rows []tableRow
	for i, line := range strings.Split(string(text), "\n") {
		var c, ours string
		if cells := strings.Split(line, "|"); len(cells) == 5 {
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

// checkedPackage is this package as the type checker sees its source.
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
	if build.Default.GOROOT == "" { // with -trimpath a program does not know it
		root, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			return nil, err
		}
		build.Default.GOROOT = strings.TrimSpace(string(root))
	}
	conf := types.Config{Importer: importer.ForCompiler(fset, "source", nil)}
	return conf.Check("verbs", fset, files, nil)
})

// lookup finds "Name", "Type.Field" or "Type.Method".
func lookup(pkg *types.Package, name string) types.Object {
	outer, inner, nested := strings.Cut(name, ".")
	obj := pkg.Scope().Lookup(outer)
	if obj == nil || !nested {
		return obj
	}
	member, _, _ := types.LookupFieldOrMethod(obj.Type(), true, pkg, inner)
	return member
}

// TestTableNamesExist: what docs/verbs.md calls verbs.X is there.
func TestTableNamesExist(t *testing.T) {
	pkg := checkedPackage(t)
	text, err := os.ReadFile(tablePath)
	require.NoError(t, err)
	for i, line := range strings.Split(string(text), "\n") {
		for _, m := range ourRE.FindAllStringSubmatch(line, -1) {
			if lookup(pkg, m[1]) == nil {
				t.Errorf("%s:%d: there is no verbs.%s", tablePath, i+1, m[1])
			}
		}
	}
}

// TestTableIsCompleteOverLibibverbs: every function, type and constant of
// libibverbs stands in exactly one row, and no row speaks of others.
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
				t.Errorf("%s:%d: libibverbs has no %s %s", tablePath, row.line, c.kind, c.pattern)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.kind)) {
		if len(lines[name]) != 1 {
			t.Errorf("%s %s stands in lines %v of %s, want one", g.kind[name], name, lines[name], tablePath)
		}
	}
}

// TestTableIsCompleteOverPackage: every exported name of the package is told.
func TestTableIsCompleteOverPackage(t *testing.T) {
	text, err := os.ReadFile(tablePath)
	require.NoError(t, err)
	told := map[string]bool{}
	for _, m := range ourRE.FindAllStringSubmatch(string(text), -1) {
		told[m[1]] = true
		told[strings.Split(m[1], ".")[0]] = true
	}
	for _, name := range checkedPackage(t).Scope().Names() {
		if token.IsExported(name) && !told[name] {
			t.Errorf("%s does not tell what verbs.%s is in libibverbs", tablePath, name)
		}
	}
}

// TestConstantsAreThoseOfC: where a row sets one constant against one of ours
// they are equal, and so is every constant of our enumerations.
func TestConstantsAreThoseOfC(t *testing.T) {
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
			t.Errorf("%s:%d: %s is %d, verbs.%s is %d", tablePath, row.line, row.c[0].pattern, want, row.ours[0], got)
		}
		equal[row.ours[0]] = true
	}
	alone := map[string]bool{"GSI": true, "SendUnhurried": true, "AccessRemote": true, "Zero": true}
	for _, name := range pkg.Scope().Names() {
		if _, isConst := pkg.Scope().Lookup(name).(*types.Const); isConst && token.IsExported(name) && !alone[name] {
			require.True(t, equal[name], "verbs.%s has no constant of libibverbs beside it in %s", name, tablePath)
		}
	}
}
