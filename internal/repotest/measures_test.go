package repotest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// limits are the upper limits of the measures. They only go down: a change that improves
// a measure by more than slack must lower its limit as well.
var limits = map[string]float64{
	"percent of functions named by one word":            29.1,
	"percent of unexported functions named by one word": 11.5,
	"functions named by a word of several meanings":     0,
	"doc comments of the form X is what":                0,
	"question words in 10,000 words of comments":        1,
	"error texts without a subject":                     0,
	"lines of documents over 140 characters":            0,
	"cells of tables over 90 characters":                0,
	"public packages":                                   21,
	"exported names":                                    1248,
	"exported constants and variables":                  692,
	"packages without a runnable example":               8,
}

// slack is the fraction of a limit by which a measure may stay below the limit.
const slack = 0.05

var (
	oneWord = regexp.MustCompile(`^([A-Za-z][a-z0-9]*|[A-Z0-9]+)$`)
	// Words that have had several meanings each, and need an object.
	ambiguous = strings.Split("settle rest take place part leave look tell say hear heard heed lose lost gone over room fits wrong meet greet of with whole apart way", " ")

	isWhat       = regexp.MustCompile(`^// \w+ (is|are) (what|who|how|where|when|that|whoever|whatever)\b`)
	questionWord = regexp.MustCompile(`(?i)[^a-z]*\b(what|who|whoever|whatever)\b`)
	makesError   = regexp.MustCompile(`(^e|E)rrorf?$`)
	cellEnd      = regexp.MustCompile(`[^\\]\|`)
	noSubject    = regexp.MustCompile(`\b(it|they|there|somebody|nobody|one|these|those|something) (is|are|was|has|have|says|wants|comes|speaks|looks|belongs|takes|does|may)\b`)
)

// counts are the numbers that the measures are computed from.
type counts struct {
	functions, oneWord, unexported, unexportedOneWord, ambiguous int
	words, questionWords, isWhat                                 int // in comments
	noSubject                                                    int // error texts
	public                                                       map[string]bool
	names, values                                                int // exported by public packages
}

// countSource counts in all Go files except tests and test data.
func countSource(t *testing.T) *counts {
	t.Helper()
	x := &counts{public: map[string]bool{}}
	for _, name := range readSource(t).files {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testdata") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, filepath.Join(root, name), nil, parser.ParseComments)
		require.NoError(t, err)
		public := !slices.ContainsFunc(strings.Split(path.Dir(name), "/"), func(dir string) bool {
			return slices.Contains([]string{"internal", "cmd", "dropin", "examples", "interop"}, dir)
		})
		if public {
			x.public[path.Dir(name)] = true
		}
		for _, group := range file.Comments {
			for _, c := range group.List {
				x.countComment(c.Text)
			}
		}
		for _, d := range file.Decls {
			x.countDecl(d, public)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				x.countErrorText(call)
			}
			return true
		})
	}
	return x
}

// countComment counts in one line of a comment.
func (x *counts) countComment(text string) {
	if isWhat.MatchString(text) {
		x.isWhat++
	}
	x.words += len(strings.Fields(strings.TrimPrefix(text, "//")))
	x.questionWords += len(questionWord.FindAllString(text, -1))
}

// countErrorText counts the literal texts of a call that makes an error: errors.New,
// fmt.Errorf, or a function with a name such as newError, usageErrorf or protocolErrorf.
func (x *counts) countErrorText(call *ast.CallExpr) {
	name := ""
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
	}
	if name != "New" && !makesError.MatchString(name) {
		return
	}
	for _, arg := range call.Args {
		if text, ok := arg.(*ast.BasicLit); ok && text.Kind == token.STRING && noSubject.MatchString(text.Value) {
			x.noSubject++
		}
	}
}

// withoutExample returns the directories of packages, except programs, whose tests have no
// Example function.
func withoutExample(t *testing.T) (dirs []string) {
	t.Helper()
	library, shown := map[string]bool{}, map[string]bool{}
	for _, name := range readSource(t).files {
		if !strings.HasSuffix(name, ".go") || strings.Contains(name, "testdata") || strings.HasPrefix(name, "examples/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		dir := path.Dir(name)
		if strings.HasSuffix(name, "_test.go") {
			shown[dir] = shown[dir] || bytes.Contains(text, []byte("\nfunc Example"))
		} else if !bytes.Contains(text, []byte("\npackage main\n")) && !bytes.HasPrefix(text, []byte("package main\n")) {
			library[dir] = true
		}
	}
	for dir := range library {
		if !shown[dir] {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return dirs
}

// countDecl counts the names of a declaration. The exported ones count if its package is
// public.
func (x *counts) countDecl(d ast.Decl, public bool) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.Name == "main" || d.Name.Name == "init" {
			return
		}
		one := oneWord.MatchString(d.Name.Name)
		x.functions++
		if !d.Name.IsExported() {
			x.unexported++
		}
		if one {
			x.oneWord++
		}
		if one && !d.Name.IsExported() {
			x.unexportedOneWord++
		}
		if slices.Contains(ambiguous, d.Name.Name) {
			x.ambiguous++
		}
		if public && d.Name.IsExported() && (d.Recv == nil || receiverExported(d.Recv.List[0].Type)) {
			x.names++
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if !public || !spec.Name.IsExported() {
					continue
				}
				x.names++
				if methods, ok := spec.Type.(*ast.InterfaceType); ok {
					for _, m := range methods.Methods.List {
						for _, name := range m.Names { // none if m is embedded
							if name.IsExported() {
								x.names++
							}
						}
					}
				}
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					if public && name.IsExported() {
						x.values++
					}
				}
			}
		}
	}
}

// receiverExported reports whether the type of a receiver is exported.
func receiverExported(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiverExported(e.X)
	case *ast.IndexExpr:
		return receiverExported(e.X)
	case *ast.IndexListExpr:
		return receiverExported(e.X)
	case *ast.Ident:
		return e.IsExported()
	}
	return false
}

// TestMeasures compares the measures of language and API surface with their limits.
func TestMeasures(t *testing.T) {
	x := countSource(t)
	require.Greater(t, x.functions, 1000)
	long, longCells := 0, 0
	documents, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	for _, name := range append(documents, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if row, ok := strings.CutPrefix(line, "|"); ok {
				for _, cell := range cellEnd.Split(row, -1) {
					if len([]rune(strings.TrimSpace(cell))) > 90 {
						longCells++
					}
				}
			} else if len(strings.TrimSuffix(line, "\n")) > 140 {
				long++
			}
		}
	}
	percent := func(part, whole int) float64 { return math.Round(1000*float64(part)/float64(whole)) / 10 }
	measured := map[string]float64{
		"percent of functions named by one word":            percent(x.oneWord, x.functions),
		"percent of unexported functions named by one word": percent(x.unexportedOneWord, x.unexported),
		"functions named by a word of several meanings":     float64(x.ambiguous),
		"doc comments of the form X is what":                float64(x.isWhat),
		"question words in 10,000 words of comments":        math.Round(1e5*float64(x.questionWords)/float64(x.words)) / 10,
		"error texts without a subject":                     float64(x.noSubject),
		"lines of documents over 140 characters":            float64(long),
		"cells of tables over 90 characters":                float64(longCells),
		"public packages":                                   float64(len(x.public)),
		"exported names":                                    float64(x.names),
		"exported constants and variables":                  float64(x.values),
		"packages without a runnable example":               float64(len(withoutExample(t))),
	}
	require.Len(t, limits, len(measured))
	for name, value := range measured {
		t.Logf("%s: %v, limit %v", name, value, limits[name])
		limit, ok := limits[name]
		require.True(t, ok, name)
		if value > limit {
			t.Errorf("%s: %v, over the limit of %v", name, value, limit)
		}
		if value < limit*(1-slack)-1 {
			t.Errorf("%s: %v: lower its limit, which is %v", name, value, limit)
		}
	}
}
